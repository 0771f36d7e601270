package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// synced has the Node synced as often, the last time d ago, and not as it should be now.
func synced(times int, d time.Duration) func(*State) {
	return func(s *State) {
		s.Node.Synced, s.Memory.Syncs, s.Memory.SyncedAt = false, times, s.Now.Add(-d)
	}
}

// TestSyncsAtTheBounds shows how soon a Node is synced once more.
func TestSyncsAtTheBounds(t *testing.T) {
	node := all(provisioned, joined("True"))
	again := wantStep{do: SyncNode, poll: instance.PollSettled, silent: true, phase: clusterv1alpha1.MachinePhaseProvisioned}
	with := func(d wantStep, given ...func(*State)) wantStep {
		d.given = all(given...)
		return d
	}
	wait := again
	wait.do = Nothing
	first, third := wait, wait
	first.requeue, third.requeue = time.Second, 4*time.Second
	checkSteps(t, map[string]wantStep{
		"the last without a pause":            with(again, node, synced(syncBurst-1, 0)),
		"the first with one":                  with(first, node, synced(syncBurst, 0)),
		"the third with one":                  with(third, node, synced(syncBurst+2, 0)),
		"when the pause is over":              with(again, node, synced(syncBurst, time.Second)),
		"just before it is":                   with(wantStep{poll: instance.PollSettled, requeue: 1, silent: true, phase: clusterv1alpha1.MachinePhaseProvisioned}, node, synced(syncBurst, time.Second-1)),
		"a Node that is shown meanwhile":      {given: all(running, joined("Unknown"), synced(syncBurst, 0)), poll: instance.PollPending, requeue: time.Second, phase: clusterv1alpha1.MachinePhaseRunning, condition: "Ready Unknown NodeUnknown"},
		"a Node that keeps to what is wanted": with(wantStep{phase: clusterv1alpha1.MachinePhaseRunning, poll: instance.PollSettled}, node, func(s *State) { s.Memory.Syncs = syncBurst }),
	})
	for since, want := range map[time.Duration]int{syncWindow: syncBurst + 1, syncWindow + 1: 1} {
		if got := Next(given(node, synced(syncBurst, since))).Memory.Syncs; got != want {
			t.Errorf("%s after the last sync, %d count, want %d", since, got, want)
		}
	}
}

// A kubelet that says something else with each heartbeat, as one does whose container runtime
// hangs, is worth one write.
func TestOPS2_AKubeletsChangingWordsAreNotWritten(t *testing.T) {
	for _, ready := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		for name, before := range map[string]func(*State){"running": running, "joining": provisioned} {
			s := given(before, joined(ready))
			s.Now = s.Now.Add(time.Hour)
			writes := 0
			for beat := range 100 {
				s.Now = s.Now.Add(10 * time.Second)
				s.Node.Message = fmt.Sprintf("pleg was last seen active %ds ago", beat)
				step := Next(s)
				if step.Write {
					writes++
				}
				s.Machine.Status, s.Memory = step.Status, step.Memory
			}
			c := s.Machine.Status.Condition(clusterv1alpha1.ConditionNodeReady)
			if writes != 1 || !strings.Contains(c.Message, "KubeletSays") {
				t.Errorf("%s, %s: %d writes, the last one says %q", name, ready, writes, c.Message)
			}
		}
	}
}

func TestANodeWithoutAReasonIsShown(t *testing.T) {
	s := given(running, joined(metav1.ConditionUnknown))
	s.Node.Reason = ""
	if c := Next(s).Status.Condition(clusterv1alpha1.ConditionNodeReady); c.Message != "Node node has not reported: it has no condition Ready." {
		t.Errorf("it says %q", c.Message)
	}
}
