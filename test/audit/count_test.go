package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const log = `{"stage":"ResponseComplete","verb":"create","user":{"username":"core"},"objectRef":{"resource":"machines"},"responseStatus":{"code":201},"stageTimestamp":"2026-01-01T00:00:02.5Z"}
{"stage":"RequestReceived","verb":"create","user":{"username":"core"},"objectRef":{"resource":"machines"},"stageTimestamp":"2026-01-01T00:00:02Z"}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"core"},"objectRef":{"resource":"machines","subresource":"status"},"responseStatus":{"code":200},"stageTimestamp":"2026-01-01T00:00:03Z"}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"core"},"objectRef":{"resource":"machines","subresource":"status"},"responseStatus":{"code":409},"stageTimestamp":"2026-01-01T00:00:03Z"}
{"stage":"ResponseComplete","verb":"get","user":{"username":"core"},"objectRef":{"resource":"machines"},"responseStatus":{"code":200},"stageTimestamp":"2026-01-01T00:00:03Z"}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"somebody"},"objectRef":{"resource":"machines"},"responseStatus":{"code":200},"stageTimestamp":"2026-01-01T00:00:03Z"}
{"stage":"ResponseComplete","verb":"update","user":{"username":"core"},"objectRef":{"resource":"leases"},"responseStatus":{"code":200},"stageTimestamp":"2026-01-01T00:00:03Z"}
{"stage":"ResponseComplete","verb":"create","user":{"username":"core"},"objectRef":{"resource":"machines"},"responseStatus":{"code":201},"stageTimestamp":"2026-01-01T00:00:01Z"}
{"stage":"ResponseComp`

func TestCount(t *testing.T) {
	since := time.Date(2026, 1, 1, 0, 0, 2, 0, time.UTC)
	got, err := Count(strings.NewReader(log), "core", since)
	if err != nil {
		t.Fatal(err)
	}
	want := Writes{
		{Verb: "create", Resource: "machines"}:       1,
		{Verb: "patch", Resource: "machines/status"}: 1,
		{Verb: "update", Resource: "leases"}:         1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if got.Budgeted() != 2 {
		t.Errorf("Budgeted() = %d, want 2: the Lease does not count", got.Budgeted())
	}
	if got.Of("machines") != 1 {
		t.Errorf("Of(machines) = %d, want 1", got.Of("machines"))
	}
	if want := "     1  update leases\n     1  create machines\n     1  patch machines/status\n"; got.String() != want {
		t.Errorf("String() = %q, want %q", got.String(), want)
	}
}

func TestCountRefusesWhatIsNoAuditLog(t *testing.T) {
	if _, err := Count(strings.NewReader("not json\n"), "core", time.Time{}); err == nil {
		t.Error("a line that is not JSON is no error")
	}
}

func TestLogGoesOnWhereItStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	last := strings.LastIndex(log, "\n") + 1
	first := strings.Index(log, "\n") + 1
	if err := os.WriteFile(path, []byte(log[:first+10]), 0o600); err != nil {
		t.Fatal(err)
	}
	l := NewLog(path)
	begin, err := l.Next()
	if err != nil || len(begin) != 1 {
		t.Fatalf("the first line alone gives %v, %v", begin, err)
	}
	whole := log[:last] + `{"stage":"ResponseComplete","verb":"patch","requestURI":"/uri","user":{"username":"core"},` +
		`"objectRef":{"apiGroup":"g","resource":"machines","namespace":"ns","name":"n"},"responseStatus":{"code":200},` +
		`"requestReceivedTimestamp":"2026-01-01T00:00:04Z","stageTimestamp":"2026-01-01T00:00:05Z","requestObject":{"a":1}}` + "\n"
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	rest, err := l.Next()
	if err != nil || len(rest) != 5 {
		t.Fatalf("the rest gives %d writes, %v, want 5: what failed and what only reads does not count", len(rest), err)
	}
	want := Request{
		Write: Write{Verb: "patch", Resource: "machines"}, User: "core", URI: "/uri", Group: "g", Namespace: "ns", Name: "n",
		Received: time.Date(2026, 1, 1, 0, 0, 4, 0, time.UTC), Answered: time.Date(2026, 1, 1, 0, 0, 5, 0, time.UTC),
		Body: []byte(`{"a":1}`),
	}
	if diff := cmp.Diff(want, rest[4]); diff != "" {
		t.Errorf("the last write (-want +got):\n%s", diff)
	}
	if more, err := l.Next(); err != nil || len(more) != 0 {
		t.Errorf("at the end there are %v, %v", more, err)
	}
}

// An API server that is killed leaves a line unfinished; the next one goes on in the middle of it.
func TestCountPassesOverWhatAKillLeftUnfinished(t *testing.T) {
	torn := `{"stage":"ResponseComp` + log[:strings.Index(log, "\n")+1] + log
	got, err := Count(strings.NewReader(torn), "core", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if n := got.Of("machines"); n != 2 {
		t.Errorf("%d writes to machines, want the 2 of whole lines", n)
	}
}
