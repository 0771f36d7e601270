package lifecycle

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// TestAMachineCostsFewWritesWithoutFaults: without faults a machine costs at most eight writes
// until it is Running, its birth included. It costs at most five to be deleted, the order to delete
// it included.
func TestAMachineCostsFewWritesWithoutFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(false)
		always := func() fate { return goes }
		w.writes = 1 // Its birth.
		var phases []string
		for range 60 {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1, 2:
				w.sync()
				w.reconcile(always)
			case 3:
				w.answer("", true)
			case 4:
				w.observe()
				w.pass(time.Duration(rapid.IntRange(1, 900).Draw(t, "ms")) * time.Millisecond)
			case 5:
				if w.vm != nil {
					w.node, w.nodeReady = w.vm.State == instance.Running, w.node
					w.vm.State = instance.Running
				}
			}
			if p := string(w.api.Status.Phase); len(phases) == 0 || phases[len(phases)-1] != p {
				phases = append(phases, p)
			}
		}
		if w.writes > 8 {
			t.Fatalf("%d writes until Running", w.writes)
		}
		w.settleDown()
		if w.api.Status.Phase != clusterv1alpha1.MachinePhaseRunning {
			t.Fatalf("phases %v, writes %d, %+v", phases, w.writes, w.api)
		}
		w.api.DeletionTimestamp = w.now
		w.writes = 2 // The order to delete it, and the cordon.
		w.volumes = 1
		detached := w.now.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "attached")) * time.Second)
		for step := 0; w.api != nil; step++ {
			if step > 1000 {
				t.Fatal("it is still there after 500 s")
			}
			if !w.now.Before(detached) {
				w.volumes = 0
			}
			w.sync()
			w.reconcile(always)
			w.answer("", true)
			w.reconcile(always)
			if w.vm != nil && rapid.Bool().Draw(t, "dies") {
				w.vm = nil
			}
			w.observe()
			w.pass(500 * time.Millisecond)
		}
		if w.writes > 5 {
			t.Fatalf("%d writes to delete", w.writes)
		}
		if len(w.broken) > 0 {
			t.Fatal(strings.Join(w.broken, "\n"))
		}
	})
}
