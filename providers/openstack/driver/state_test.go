package driver

import (
	"encoding/json"
	"testing"
	"time"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// What Nova says of a server, and what that is to core.
func TestState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, server string
		want         driverv1alpha1.MachineState
		reason, says string
	}{
		{"builds", `{"status":"BUILD","OS-EXT-STS:task_state":"scheduling"}`, driverv1alpha1.MachineState_MACHINE_STATE_CREATING, "", ""},
		{"runs", `{"status":"ACTIVE","OS-EXT-STS:task_state":null}`, driverv1alpha1.MachineState_MACHINE_STATE_RUNNING, "", ""},
		{"runs while its image is saved", `{"status":"ACTIVE","OS-EXT-STS:task_state":"image_uploading"}`,
			driverv1alpha1.MachineState_MACHINE_STATE_RUNNING, "", ""},
		{"is stopping", `{"status":"ACTIVE","OS-EXT-STS:task_state":"powering-off"}`, driverv1alpha1.MachineState_MACHINE_STATE_STOPPING, "", ""},
		{"is being deleted", `{"status":"ACTIVE","OS-EXT-STS:task_state":"deleting"}`, driverv1alpha1.MachineState_MACHINE_STATE_DELETING, "", ""},
		{"is being deleted while it hangs", `{"status":"BUILD","OS-EXT-STS:task_state":"deleting"}`,
			driverv1alpha1.MachineState_MACHINE_STATE_DELETING, "", ""},
		{"can be restored", `{"status":"SOFT_DELETED"}`, driverv1alpha1.MachineState_MACHINE_STATE_DELETING, "", ""},
		{"reboots", `{"status":"HARD_REBOOT","OS-EXT-STS:task_state":"rebooting_hard"}`,
			driverv1alpha1.MachineState_MACHINE_STATE_UPDATING, "", ""},
		{"waits for somebody to confirm its size", `{"status":"VERIFY_RESIZE"}`, driverv1alpha1.MachineState_MACHINE_STATE_UPDATING, "", ""},
		{"is off", `{"status":"SHUTOFF"}`, driverv1alpha1.MachineState_MACHINE_STATE_STOPPED, "ServerStatus", "Nova says that the server is SHUTOFF."},
		{"runs another image", `{"status":"RESCUE"}`, driverv1alpha1.MachineState_MACHINE_STATE_STOPPED, "ServerStatus", "Nova says that the server is RESCUE."},
		{"has left its host", `{"status":"SHELVED_OFFLOADED"}`,
			driverv1alpha1.MachineState_MACHINE_STATE_STOPPED, "ServerStatus", "Nova says that the server is SHELVED_OFFLOADED."},
		{"is out of reach", `{"status":"UNKNOWN"}`,
			driverv1alpha1.MachineState_MACHINE_STATE_UPDATING, "ServerStatus", "Nova says that the server is UNKNOWN."},
		{"has a status of a later Nova", `{"status":"FROZEN"}`,
			driverv1alpha1.MachineState_MACHINE_STATE_UPDATING, "StatusUnknown", "Nova says that the server is FROZEN."},
		{"failed", `{"status":"ERROR","fault":{"code":500,"message":"No valid host was found. "}}`,
			driverv1alpha1.MachineState_MACHINE_STATE_FAILED, "CapacityUnavailable", "No valid host was found. "},
		{"was too many", `{"status":"ERROR","fault":{"code":413,"message":"Quota exceeded for instances: Requested 1, but already used 2 of 2 instances"}}`,
			driverv1alpha1.MachineState_MACHINE_STATE_FAILED, "QuotaExceeded", "Quota exceeded for instances: Requested 1, but already used 2 of 2 instances"},
		{"failed without a word", `{"status":"ERROR"}`,
			driverv1alpha1.MachineState_MACHINE_STATE_FAILED, "ServerError", "Nova says that the server is in ERROR, and not why."},
		{"failed to be resized", `{"status":"ERROR","OS-SRV-USG:launched_at":"2026-01-01T11:59:00.000000","fault":{"code":500,"message":"No space left."}}`,
			driverv1alpha1.MachineState_MACHINE_STATE_STOPPED, "ServerError", "The server ran, and is in ERROR now. No space left."},
		{"was put in ERROR by an administrator", `{"status":"ERROR","OS-SRV-USG:launched_at":"2026-01-01T11:59:00.000000"}`,
			driverv1alpha1.MachineState_MACHINE_STATE_STOPPED, "ServerError",
			"The server ran, and is in ERROR now. Nova says that the server is in ERROR, and not why."},
		{"never ran", `{"status":"ERROR","OS-SRV-USG:launched_at":null,"fault":{"code":500,"message":"No valid host was found. "}}`,
			driverv1alpha1.MachineState_MACHINE_STATE_FAILED, "CapacityUnavailable", "No valid host was found. "},
		{"failed after it ran, and is being deleted",
			`{"status":"ERROR","OS-EXT-STS:task_state":"deleting","OS-SRV-USG:launched_at":"2026-01-01T11:59:00.000000"}`,
			driverv1alpha1.MachineState_MACHINE_STATE_DELETING, "", ""},
		{"failed, and is being deleted", `{"status":"ERROR","OS-EXT-STS:task_state":"deleting"}`,
			driverv1alpha1.MachineState_MACHINE_STATE_DELETING, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s server
			if err := json.Unmarshal([]byte(c.server), &s); err != nil {
				t.Fatal(err)
			}
			state, reason, message := s.state()
			if state != c.want || reason != c.reason || message != c.says {
				t.Errorf("%v %q %q, want %v %q %q", state, reason, message, c.want, c.reason, c.says)
			}
		})
	}
}

// A server that is being deleted is asked for again only if Nova seems to have forgotten it.
func TestDeletionIsRepeatedOnlyIfNovaForgotIt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for raw, want := range map[string]bool{
		`{"status":"ACTIVE","OS-EXT-STS:task_state":"deleting","updated":"2026-01-01T11:59:00Z"}`: true,
		`{"status":"ACTIVE","OS-EXT-STS:task_state":"deleting","updated":"2026-01-01T11:54:00Z"}`: false,
		`{"status":"DELETED","OS-EXT-STS:task_state":null,"updated":"2026-01-01T11:59:00Z"}`:      true,
		`{"status":"DELETED","OS-EXT-STS:task_state":null,"updated":"2026-01-01T11:54:00Z"}`:      false,
		`{"status":"ACTIVE","OS-EXT-STS:task_state":null,"updated":"2026-01-01T11:59:00Z"}`:       false,
		`{"status":"ERROR","OS-EXT-STS:task_state":null,"updated":"2026-01-01T11:59:00Z"}`:        false,
	} {
		var s server
		if err := json.Unmarshal([]byte(raw), &s); err != nil {
			t.Fatal(err)
		}
		if got := s.leaving(now); got != want {
			t.Errorf("%s: leaving is %t, want %t", raw, got, want)
		}
	}
}

// Nova writes an image as an object, and for a server that boots from a volume as an empty string.
func TestServerImage(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{`{"image":{"id":"one","links":[]}}`: "one", `{"image":""}`: "", `{}`: ""} {
		var s server
		if err := json.Unmarshal([]byte(raw), &s); err != nil || s.Image.ID != want {
			t.Errorf("%s: %q, want %q (%v)", raw, s.Image.ID, want, err)
		}
	}
}
