package driverstatus

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatIsPublishedCanBeRead(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Local())
	want := []Driver{
		{Name: "away", Address: "exec:///driver", Since: since, Reason: "the driver is not connected: \"why\"\n"},
		{Name: "ready", Address: "unix:///d.sock", Ready: true, Since: since, Version: "v1", Features: []string{"LIST"}, MaxConcurrentRequests: 8},
	}
	data, err := Encode([]Driver{want[1], want[0]})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("published and read again (-want +got):\n%s", diff)
	}
}

func TestALaterManagersWordsAreRead(t *testing.T) {
	got, err := Decode(map[string]string{"a": "address: unix:///a\nready: true\nsince: null\nmood: good\n"})
	if err != nil || len(got) != 1 || !got[0].Ready {
		t.Errorf("Decode() = %v, %v", got, err)
	}
}

func TestWhatCannotBeDecodedNamesItsKey(t *testing.T) {
	_, err := Decode(map[string]string{"broken": "ready: maybe"})
	if err == nil || !strings.Contains(err.Error(), `"broken"`) {
		t.Errorf("Decode() = %v", err)
	}
}
