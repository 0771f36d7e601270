package audit

import (
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
