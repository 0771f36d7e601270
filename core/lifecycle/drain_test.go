package lifecycle

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// renewal is what the Lease of a silent Node says.
var renewal = epoch.Add(time.Minute)

// quiet is what a pass finds on a silent Node whose pods are terminating.
func quiet() *Drain {
	return &Drain{Terminating: true, Silent: true, RenewTime: renewal, Remaining: "a/b"}
}

// silentFor has passes find the Node silent for d in which other Nodes report; then one finds
// drain.
func silentFor(d time.Duration, drain *Drain) func(*State) {
	return func(s *State) {
		s.Machine.DrainTimeout = time.Hour
		s.Drain = quiet()
		s.Memory = Next(*s).Memory
		later(d)(s)
		s.Clock.Nodes += d
		s.Drain = drain
	}
}

// TestSilence shows when the pods of a Node that does not report are not waited for any more.
func TestSilence(t *testing.T) {
	going := all(running, deleting)
	change := func(change func(*Drain)) *Drain {
		d := quiet()
		change(d)
		return d
	}
	waits := func(given func(*State), reason, message string) wantStep {
		return wantStep{
			given: all(going, given), requeue: 2 * time.Second, phase: clusterv1alpha1.MachinePhaseDeleting,
			condition: "Drained False " + reason, message: message,
		}
	}
	ends := func(given func(*State), reason, message string) wantStep {
		return wantStep{
			given: all(going, given), do: Delete, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Drained True " + reason, message: message,
		}
	}
	const limit = 5 * time.Minute
	blocked := waits(silentFor(limit, change(func(d *Drain) { d.Terminating, d.Blocked = false, "budget" })), "BlockedByPodDisruptionBudget", "budget")
	blocked.requeue = blockedBackoff.First
	again := waits(all(blocked.given, func(s *State) { s.Memory.PassesBlocked = 2 }), "BlockedByPodDisruptionBudget", "budget")
	again.requeue = 20 * time.Second
	first := waits(func(s *State) { s.Drain = quiet() }, "Draining", "Its kubelet does not report. They are no longer waited for once that has lasted 5m0s")
	first.requeue = time.Second
	checkSteps(t, map[string]wantStep{
		"a Node that has just gone silent is waited for": first,
		"not long enough":                     waits(silentFor(limit-1, quiet()), "Draining", "does not report"),
		"long enough":                         ends(silentFor(limit, quiet()), "NodeUnreachable", "not waited for: a/b."),
		"while nobody could have heard of it": waits(all(silentFor(limit, quiet()), func(s *State) { s.Clock.Nodes = 0 }), "Draining", "does not report"),
		"a Lease that was renewed meanwhile": waits(silentFor(limit, change(func(d *Drain) { d.RenewTime = renewal.Add(time.Second) })),
			"Draining", "does not report"),
		"one that cannot be read":               waits(silentFor(limit, change(func(d *Drain) { d.LeaseError = "forbidden" })), "Draining", "cannot be read: forbidden"),
		"a Node that reports again":             waits(silentFor(limit, change(func(d *Drain) { d.Silent = false })), "Draining", "evicted from Node node."),
		"a pod that a budget keeps":             blocked,
		"a pod that a budget keeps, once again": again,
		"a pod whose eviction is refused": waits(silentFor(limit, change(func(d *Drain) { d.Terminating, d.Refused = false, "no" })),
			"EvictionRefused", "no"),
		"a pass that failed":   waits(silentFor(limit, change(func(d *Drain) { d.Error = "timeout" })), "Draining", "timeout"),
		"nothing is left":      ends(func(s *State) { s.Drain = &Drain{Done: true, Terminating: true, Silent: true} }, "Drained", "No pod is left"),
		"a VM that is missing": ends(all(missing(missesUntilGone), func(s *State) { s.Drain = quiet() }), "NodeUnreachable", "not waited for: a/b."),
		"a VM that was found missing by a process before": ends(func(s *State) {
			s.Driver.LastPoll, s.Drain = nil, quiet()
			s.Machine.Status = s.Machine.Status.set(metav1.Condition{Type: "InstanceReady", Status: "False", Reason: clusterv1alpha1.ReasonInstanceMissing}, *s)
		}, "NodeUnreachable", "not waited for: a/b."),
	})
	s := given(going, silentFor(limit, change(func(d *Drain) { d.Silent = false })))
	if memory := Next(s).Memory.Silence; memory != nil {
		t.Errorf("a Node that reports again has the silence %+v", memory)
	}
}

// TestUnreachable: a drain lives through outages, restarts and changing verdicts of
// node-lifecycle. Its pods are given up only when nothing could be heard of the Node for long
// enough. Then they are given up.
func TestUnreachable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(false)
		w.api.DrainTimeout = 100 * time.Hour
		w.sync()
		w.settleDown()
		w.pods = 1
		w.beat(true, false, false)
		w.end()
		always := func() fate { return goes }
		for range rapid.IntRange(1, 40).Draw(t, "length") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				w.crash()
			case 1:
				w.leave(false, rapid.IntRange(0, 2).Draw(t, "dark") == 0)
			case 2, 3:
				silent := rapid.IntRange(0, 3).Draw(t, "silent") > 0
				w.beat(!silent || rapid.Bool().Draw(t, "renews"), silent, rapid.IntRange(0, 2).Draw(t, "alone") == 0)
			default:
				w.pass(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
			}
			w.sync()
			w.reconcile(always)
			if w.memory.Drained.Reason != "" {
				break
			}
		}
		w.leave(false, false)
		w.beat(false, true, false)
		for range 10 {
			w.sync()
			w.reconcile(always)
			w.pass(4 * time.Second)
		}
		if reason := w.memory.Drained.Reason; reason != clusterv1alpha1.ReasonNodeUnreachable {
			w.breaks("a Node that is silent for good is drained as %q", reason)
		}
		if len(w.broken) > 0 {
			t.Fatal(strings.Join(w.broken, "\n"))
		}
	})
}

func TestAProcessWaitsFiveMinutesThoughTheTimeIsOver(t *testing.T) {
	anHourAgo := metav1.Condition{Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(epoch.Add(-time.Hour))}
	for name, tc := range map[string]struct {
		timeout, observed, want time.Duration
	}{
		"a process that has just begun":   {timeout: time.Hour, observed: 0, want: 5 * time.Minute},
		"one that waits for four minutes": {timeout: time.Hour, observed: 4 * time.Minute, want: time.Minute},
		"one that waits for five":         {timeout: time.Hour, observed: 5 * time.Minute, want: 0},
		"a machine that gives it less":    {timeout: time.Minute, observed: 0, want: time.Minute},
		"a machine that gives it more":    {timeout: 2 * time.Hour, observed: 10 * time.Minute, want: 50 * time.Minute},
	} {
		if got := timeLeft(anHourAgo, tc.timeout, Wait{Since: epoch, Observed: tc.observed}); got != tc.want {
			t.Errorf("%s has %s left, want %s", name, got, tc.want)
		}
	}
}

// TestRefusalThatLastsIsShown: what keeps a drain from going on is shown once it has lasted,
// however many passes find it.
func TestRefusalThatLastsIsShown(t *testing.T) {
	refused := &Drain{Refused: "pod a/b: no", Remaining: "a/b"}
	s := given(running, deleting, func(s *State) {
		s.Machine.DrainTimeout = time.Hour
		s.Drain = &Drain{Remaining: "a/b"}
		s.Machine.Status = Next(*s).Status
	})
	for since := time.Duration(0); since <= drainDebounce; since += time.Second {
		s.Drain = nil
		s.Memory = Next(s).Memory
		s.Drain = refused
		step := Next(s)
		if shown := step.Write; shown != (since >= drainDebounce) {
			t.Errorf("after %s it is shown: %t", since, shown)
		}
		s.Memory = step.Memory
		later(time.Second)(&s)
	}
}
