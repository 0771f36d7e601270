package driver

import (
	"strings"
	"testing"
	"time"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
)

// Why a server failed does not change: Nova, which leaves it out of its lists, is asked once.
func TestAFailedServerIsAskedForOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	if _, err := w.create("huge", map[string]any{"flavor": "m1.huge"}); err != nil {
		t.Fatal(err)
	}
	check := func(m *driverv1alpha1.Machine) {
		t.Helper()
		if m.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_FAILED || !strings.Contains(m.GetMessage(), "No valid host was found.") {
			t.Errorf("the machine is %v", m)
		}
	}
	for range 3 {
		m, err := w.status("huge")
		if err != nil {
			t.Fatal(err)
		}
		check(m)
		check(w.list()[0])
	}
	if n := w.calls()["GetServer"]; n != 1 {
		t.Errorf("the server was asked for %d times", n)
	}
}

func TestFaultsAreForgotten(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	v := &faults{clock: func() time.Time { return now }}
	failed := func(id string) server {
		return server{ID: id, Status: statusError, Updated: now.Add(-time.Minute), Fault: fault{Message: "why " + id}}
	}
	wanted, unwanted := failed("wanted"), failed("unwanted")
	v.keep(wanted)
	v.keep(unwanted)
	v.keep(server{ID: "running", Status: statusActive, Fault: fault{Message: "once"}})
	silent := server{ID: "silent", Status: statusError, Updated: now}
	v.keep(silent) // Nova may yet say why
	if _, known := v.of(silent); known {
		t.Error("what Nova has not said so soon is taken for all it will say")
	}
	for range 3 {
		now = now.Add(faultLife / 2)
		if said, known := v.of(wanted); !known || said.Message != "why wanted" {
			t.Errorf("Nova said %q, %t", said.Message, known)
		}
	}
	v.keep(failed("later"))
	if _, known := v.of(unwanted); known || len(v.said) != 2 {
		t.Errorf("known are %v", v.said)
	}
	silent.Updated = now.Add(-faultDelay)
	v.keep(silent)
	if said, known := v.of(silent); !known || said.Message != "" {
		t.Errorf("Nova said %q, %t, of what it has no words for", said.Message, known)
	}
	again := wanted
	again.Updated = now
	if _, known := v.of(again); known {
		t.Error("what has failed again is taken for what had failed before")
	}
}
