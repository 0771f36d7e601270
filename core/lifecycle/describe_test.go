package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// TestAStatusThatHasNotSeenItsSpecIsWritten: a status that has not seen its spec is written where
// nothing else is going to be.
func TestAStatusThatHasNotSeenItsSpecIsWritten(t *testing.T) {
	for phase, want := range map[clusterv1alpha1.MachinePhase]bool{
		clusterv1alpha1.MachinePhasePending: true, clusterv1alpha1.MachinePhaseProvisioning: false,
		clusterv1alpha1.MachinePhaseProvisioned: false, clusterv1alpha1.MachinePhaseRunning: true,
		clusterv1alpha1.MachinePhaseFailed: true, clusterv1alpha1.MachinePhaseDeleting: false, clusterv1alpha1.MachinePhaseUnknown: false,
	} {
		for _, outdated := range []bool{false, true} {
			s := State{Machine: Machine{Generation: 2, Status: Status{Phase: phase, ObservedGeneration: 2}}}
			if outdated {
				s.Machine.Status.ObservedGeneration = 1
			}
			if step := debounce(s, decision{}, s.Machine.Status); step.Write != (want && outdated) {
				t.Errorf("%s, outdated %t: written %t", phase, outdated, step.Write)
			}
		}
	}
}

// TestReadyOnTheWayOut: the condition Ready of a machine on its way out names what it waits for.
func TestReadyOnTheWayOut(t *testing.T) {
	drain := func(status, reason string) metav1.Condition {
		return metav1.Condition{Type: "Drained", Status: metav1.ConditionStatus(status), Reason: reason, Message: "of the drain"}
	}
	vm := func(status, reason string) metav1.Condition {
		return metav1.Condition{Type: "InstanceReady", Status: metav1.ConditionStatus(status), Reason: reason, Message: "of the VM"}
	}
	volumes := func(status, reason string) metav1.Condition {
		return metav1.Condition{Type: "VolumesDetached", Status: metav1.ConditionStatus(status), Reason: reason, Message: "of the volumes"}
	}
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"the drain":                             {[]metav1.Condition{drain("False", "Draining"), vm("True", "Running")}, "Draining of the drain"},
		"the VM after the drain":                {[]metav1.Condition{drain("True", "Drained"), vm("False", "DriverUnavailable")}, "DriverUnavailable of the VM"},
		"the VM after a drain that took long":   {[]metav1.Condition{drain("False", "DrainTimedOut"), vm("False", "Deleting")}, "Deleting of the VM"},
		"the VM after a drain that was skipped": {[]metav1.Condition{drain("False", "DrainSkipped"), vm("False", "Deleting")}, "Deleting of the VM"},
		"the VM of a Node that is another's":    {[]metav1.Condition{drain("False", "NodeConflict"), vm("False", "Deleting")}, "Deleting of the VM"},
		"volumes after the drain": {
			[]metav1.Condition{drain("True", "Drained"), volumes("False", "WaitingForVolumes"), vm("True", "Running")}, "WaitingForVolumes of the volumes",
		},
		"volumes after a drain that took long": {
			[]metav1.Condition{drain("False", "DrainTimedOut"), volumes("False", "WaitingForVolumes"), vm("True", "Running")}, "WaitingForVolumes of the volumes",
		},
		"the VM after volumes that took long": {
			[]metav1.Condition{drain("True", "Drained"), volumes("False", "VolumeDetachTimedOut"), vm("False", "Deleting")}, "Deleting of the VM",
		},
		"the VM after its volumes": {
			[]metav1.Condition{drain("True", "Drained"), volumes("True", "Detached"), vm("False", "Deleting")}, "Deleting of the VM",
		},
		"a VM that still runs":                 {[]metav1.Condition{drain("True", "Drained"), vm("True", "Running")}, "Deleting The machine is being deleted."},
		"a machine that was never asked for":   {[]metav1.Condition{drain("True", "NoNode")}, "Deleting The machine is being deleted."},
		"a VM of which nobody knows the state": {[]metav1.Condition{drain("True", "Drained"), vm("Unknown", "OutcomeUnknown")}, "OutcomeUnknown of the VM"},
	} {
		t.Run(name, func(t *testing.T) {
			var s Status
			for _, one := range c.conditions {
				s = s.set(one, State{Now: epoch})
			}
			got := describeReady(s, true)
			if got.Status != "False" || got.Reason+" "+got.Message != c.want {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
}

// TestWrittenAtOnce: what is told, and when it is written.
func TestWrittenAtOnce(t *testing.T) {
	lost := func(s *State) {
		s.Memory.Last = &instance.Outcome{Operation: instance.Create, Failure: &instance.Failure{Class: instance.OutcomeUnknown, Reason: "OutcomeUnknown"}}
	}
	for name, c := range map[string]struct {
		given  func(*State)
		do     Action
		write  bool
		events int
	}{
		"an intent":                     {func(*State) {}, Create, true, 0},
		"an intent after a lost answer": {all(intended, lost), Create, false, 0},
		"an intent after a refusal": {all(intended, func(s *State) {
			lost(s)
			*s.Memory.Last.Failure = instance.Failure{Class: instance.Quota, Reason: "QuotaExceeded"}
		}), Create, true, 1},
		"a delete":                                  {all(intended, deleting), Delete, true, 0},
		"a Node to be synced":                       {all(provisioned, joined("True"), func(s *State) { s.Node.Synced = false }), SyncNode, false, 0},
		"a kubelet that is too old":                 {func(s *State) { s.BootstrapWarning = "old" }, Create, true, 1},
		"a VM that cannot be looked at":             {all(running, refusedLook(instance.Credentials, true)), Nothing, true, 1},
		"a VM that runs":                            {all(intended, func(s *State) { s.Machine.ProviderID = "cloud:///1" }, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Running})), Nothing, true, 0},
		"what was told":                             {all(running, refusedLook(instance.Credentials, true), func(s *State) { s.Machine.Status = Next(*s).Status }), Nothing, false, 0},
		"a driver that comes and goes, to a create": {all(intended, lost, func(s *State) { s.Memory.RetryAt = s.Now }), Create, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			step := Next(given(c.given))
			if step.Do != c.do || (step.Write && step.Do != SyncNode) != c.write || len(step.Events) != c.events {
				t.Errorf("does %q, writes %t, tells %+v", step.Do, step.Write, step.Events)
			}
		})
	}
}

// TestOperationIsDated: an operation is dated when it changes, and not again.
func TestOperationIsDated(t *testing.T) {
	first := Next(given()).Status.LastOperation
	if want := given().Now; first == nil || !first.LastUpdateTime.Time.Equal(want) {
		t.Fatalf("the first operation is dated %+v, want %s", first, want)
	}
	s := given(intended, later(settle), func(s *State) {
		s.Memory.Last = &instance.Outcome{Operation: instance.Create, Failure: &instance.Failure{Class: instance.Quota, Reason: "QuotaExceeded"}}
	})
	if again := Next(s).Status.LastOperation; !again.LastUpdateTime.Equal(&first.LastUpdateTime) {
		t.Errorf("the same operation is dated %s, was %s", again.LastUpdateTime, first.LastUpdateTime)
	}
	provisionedAt := given(provisioned).Machine.Status.LastOperation.LastUpdateTime
	if again := given(running).Machine.Status.LastOperation; provisionedAt.IsZero() || !again.LastUpdateTime.Equal(&provisionedAt) {
		t.Errorf("a create that succeeded is dated %s once the machine is Running, was %s", again.LastUpdateTime, provisionedAt)
	}
	s = given(provisioned, later(settle), deleting)
	if next := Next(s).Status.LastOperation; !next.LastUpdateTime.Time.Equal(s.Now) {
		t.Errorf("another operation is dated %s, want %s", next.LastUpdateTime, s.Now)
	}
}

// TestDebounceBeginsWithTheFirstWrite: it runs from when there was first something to write that
// should pass.
func TestDebounceBeginsWithTheFirstWrite(t *testing.T) {
	now := epoch.Add(time.Minute)
	for name, c := range map[string]struct {
		debounced string
		write     bool
		waits     bool
		since     time.Time
	}{
		"what was debounced before": {"look", true, true, epoch},
		"something else":            {"turn", true, true, now},
		"nothing to be written":     {"look", false, false, time.Time{}},
		"nothing that is to pass":   {"", true, false, time.Time{}},
		"nothing of either":         {"", false, false, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			d := decision{debounced: c.debounced, debounceFor: time.Hour}
			d.Memory = Memory{Debounced: "look", DebouncedSince: epoch}
			d, waits := debounceWrite(State{Now: now}, d, c.write)
			if waits != c.waits || !d.Memory.DebouncedSince.Equal(c.since) {
				t.Errorf("waits %t since %s, want %t since %s", waits, d.Memory.DebouncedSince, c.waits, c.since)
			}
		})
	}
}

// TestWhatIsHeldBackStillSaysWhichSpecWasSeen: a write that only tells what the driver wants to be
// told again leaves all else as it was, but for generations.
func TestWhatIsHeldBackStillSaysWhichSpecWasSeen(t *testing.T) {
	const foreign = "SomebodyElses"
	s := given(running)
	s.Machine.Generation++
	s.Machine.Status = s.Machine.Status.set(condition(foreign, metav1.ConditionTrue, "Reason", ""), s)
	s.Machine.Generation++
	s.Memory.LastKnownState = []byte("new")
	s.Memory.Last = &instance.Outcome{Failure: &instance.Failure{LastKnownState: []byte("new")}}
	s.Node.UID = "another"
	d := decision{debounced: "look", debounceFor: time.Hour, nodeName: s.Machine.Status.nodeName()}
	step := debounce(s, d, describe(s, decision{phase: clusterv1alpha1.MachinePhaseFailed}))
	if !step.Write || step.Status.Phase != s.Machine.Status.Phase || string(step.Status.LastKnownState) != "new" {
		t.Fatalf("written %t: %+v", step.Write, step.Status)
	}
	if ref := step.Status.NodeRef; ref == nil || ref.UID != "another" {
		t.Errorf("the Node of now is %+v", ref)
	}
	for _, c := range step.Status.Conditions {
		if before := s.Machine.Status.Condition(c.Type); !c.LastTransitionTime.Equal(&before.LastTransitionTime) {
			t.Errorf("%s changed at %s, was %s", c.Type, c.LastTransitionTime, before.LastTransitionTime)
		}
		if want := s.Machine.Generation; c.Type != foreign && c.ObservedGeneration != want || c.Type == foreign && c.ObservedGeneration == want {
			t.Errorf("%s has seen generation %d of %d", c.Type, c.ObservedGeneration, want)
		}
	}
}

// TestAFailureIsToldByTheConditionOfItsCause: a machine that had its Node has none to tell.
func TestAFailureIsToldByTheConditionOfItsCause(t *testing.T) {
	s := given(provisioned)
	described := s.Machine.Status.set(condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionFalse, "OfTheNode", ""), s)
	described = described.set(instanceNotReady("OfTheInstance", ""), s)
	for nodeReason, want := range map[string]string{clusterv1alpha1.ReasonJoinTimeout: "OfTheNode", clusterv1alpha1.ReasonNodeMissing: "OfTheInstance", "": "OfTheInstance"} {
		d := decision{phase: clusterv1alpha1.MachinePhaseFailed, nodeReason: nodeReason}
		if got := describeFailure(s, d, described).Reason; got != want {
			t.Errorf("NodeReady is %q: the failure is %q, want %q", nodeReason, got, want)
		}
	}
}

// TestProviderIDsAreTheDriversWord: what was written down holds until the driver names another VM.
func TestProviderIDsAreTheDriversWord(t *testing.T) {
	const recorded = "cloud:///recorded"
	s := given(func(s *State) { s.Machine.Status.ProviderID = recorded })
	if id, _ := describeProviderIDs(s); id != recorded {
		t.Errorf("a recorded id becomes %q", id)
	}
	s.Memory.Contradicted = recorded
	if id, _ := describeProviderIDs(s); id != "" {
		t.Errorf("an id that the driver contradicts stays %q", id)
	}
}

// TestFailedMachinesAreStalled: a failed machine tells kstatus that it will never work, in the
// words of Ready. On its way out it does not.
func TestFailedMachinesAreStalled(t *testing.T) {
	s := given(provisioned, missing(missesUntilGone))
	failed := Next(s).Status
	stalled, ready := failed.Condition(clusterv1alpha1.ConditionStalled), failed.Condition(clusterv1alpha1.ConditionReady)
	if failed.Phase != clusterv1alpha1.MachinePhaseFailed || stalled.Status != metav1.ConditionTrue || stalled.Reason != ready.Reason || stalled.Message != ready.Message {
		t.Errorf("in phase %s Stalled is %+v, Ready %+v", failed.Phase, stalled, ready)
	}
	s.Machine.Status = failed
	deleting(&s)
	if c := Next(s).Status.Condition(clusterv1alpha1.ConditionStalled); c.Type != "" {
		t.Errorf("on its way out it has %+v", c)
	}
	if c := given(provisioned).Machine.Status.Condition(clusterv1alpha1.ConditionStalled); c.Type != "" {
		t.Errorf("a machine that works has %+v", c)
	}
}
