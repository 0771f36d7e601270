package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// halfCreated is a create that failed after it had made something, which has been written down.
func halfCreated(s *State) {
	intended(s)
	s.Machine.ProviderID = "cloud:///1"
	s.Memory.Last = &instance.Outcome{Operation: instance.Create, Failure: &instance.Failure{Class: instance.Internal, Reason: "ProviderInternal"}}
}

// TestCreationAtTheBounds shows on which side of each bound a create falls.
func TestCreationAtTheBounds(t *testing.T) {
	booting := instance.Instance{ProviderID: "cloud:///1", State: instance.Creating}
	checkSteps(t, map[string]wantStep{
		"what was made half-way and was missed by one look is taken up again": {
			given: all(halfCreated, missing(1)), do: Create, condition: "InstanceReady False ProviderInternal",
			phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"what was made half-way and is gone at two looks is not": {
			given: all(halfCreated, missing(missesUntilGone)), condition: "InstanceReady False Missing", phase: clusterv1alpha1.MachinePhaseFailed,
		},
		"nor what was seen once": {
			given: all(halfCreated, func(s *State) { s.Memory.InstanceSeen = true }), poll: instance.PollPending, requeue: driverDebounce, silent: true,
			phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"nor after a delete that failed": {
			given: all(halfCreated, func(s *State) { s.Memory.Last.Operation = instance.Delete }), poll: instance.PollPending, requeue: driverDebounce, silent: true,
			phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"an accepted create whose VM one look missed waits": {
			given: all(intended, succeeded(instance.Create, nil), missing(1)), requeue: acceptedRecheck, poll: instance.PollPending, silent: true,
			phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"an accepted create is repeated when the time has come": {
			given: all(intended, succeeded(instance.Create, nil), func(s *State) { s.Memory, s.Driver.Outcome = Next(*s).Memory, nil }, later(acceptedRecheck)),
			do:    Create, poll: instance.PollPending, silent: true, phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"a create that failed is repeated when the time has come": {
			given: all(intended, func(s *State) {
				s.Memory.Last = &instance.Outcome{Operation: instance.Create, Failure: &instance.Failure{Class: instance.Quota, Reason: "QuotaExceeded"}}
				s.Memory.RetryAt = s.Now
			}), do: Create, condition: "InstanceReady False QuotaExceeded", phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"a failure half-way that tells the known providerID again": {
			given:   all(halfCreated, ended(instance.Create, instance.Failure{Class: instance.Quota, Reason: "QuotaExceeded", ProviderID: "cloud:///1"})),
			requeue: 5 * time.Second, condition: "InstanceReady False QuotaExceeded", phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"while nobody has looked at a VM that ran, its Node tells of the machine": {
			given: all(running, notPolledYet, joined("Unknown")), poll: instance.PollPending, condition: "Ready Unknown NodeUnknown",
			phase: clusterv1alpha1.MachinePhaseRunning,
		},
		"once a look has missed it, the next look does": {
			given: all(running, missing(1), joined("Unknown")), poll: instance.PollSettled, condition: "Ready True MachineReady",
			phase: clusterv1alpha1.MachinePhaseRunning, silent: true,
		},
		"a VM that boots and cannot be looked at for a moment": {
			given: all(intended, func(s *State) { s.Machine.ProviderID = "cloud:///1" }, seen(booting), refusedLook(instance.Internal, true)),
			poll:  instance.PollPending, condition: "InstanceReady False Creating", silent: true, phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"no limit to the time in which it boots": {
			given: all(intended, func(s *State) { s.Machine.ProviderID = "cloud:///1" }, seen(booting), waited(24*time.Hour)),
			poll:  instance.PollPending, condition: "InstanceReady False Creating", silent: true, phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"a driver that has lost what it knew is not asked to create": {
			given: all(intended, ended(instance.Create, instance.Failure{Class: instance.DataLoss, Reason: "X"})), poll: instance.PollSettled,
			condition: "InstanceReady False DataLoss", phase: clusterv1alpha1.MachinePhaseUnknown,
		},
		"one that knows it again goes on": {
			given: all(intended, ended(instance.Create, instance.Failure{Class: instance.DataLoss, Reason: "X"}), told,
				func(s *State) { s.Driver.Outcome = nil }, later(time.Hour),
				seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Running})),
			do: RecordProviderID, phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"the only VM of a machine is not called one of several": {
			given: provisioned, poll: instance.PollSettled, condition: "InstanceReady True Running", silent: true,
			phase: clusterv1alpha1.MachinePhaseProvisioned,
		},
	})
	if got := given(provisioned).Machine.Status.Condition("InstanceReady").Message; got != "The VM runs." {
		t.Errorf("a VM that runs is told as %q", got)
	}
}

// TestDoubtAboutEarlierCreates: a create that an earlier process may have sent is in doubt, and
// only that.
func TestDoubtAboutEarlierCreates(t *testing.T) {
	earlier := func(s *State) { s.Driver.LeadingSince = s.Now.Add(-time.Second) }
	for name, c := range map[string]struct {
		given func(*State)
		doubt bool
	}{
		"a new machine":                         {func(*State) {}, false},
		"an intent that this process only read": {intended, true},
		"an intent whose end this process saw": {all(intended, func(s *State) {
			s.Memory.Last = &instance.Outcome{Operation: instance.Create, Failure: &instance.Failure{Class: instance.Quota, Reason: "QuotaExceeded"}}
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(c.given, earlier)
			step := Next(s)
			if step.Do != Create {
				t.Fatalf("does %q", step.Do)
			}
			if m := step.Memory; m.MaybeCreated != c.doubt || m.UncertainAt.Equal(s.Driver.LeadingSince) != c.doubt {
				t.Errorf("possible %t, doubt until %s", m.MaybeCreated, m.UncertainAt)
			}
		})
	}
}

// TestNewsIsWrittenBeforeACreate: a create that is repeated after a short failure is not worth a
// write, unless it tells something that a later process has to know.
func TestNewsIsWrittenBeforeACreate(t *testing.T) {
	failed := func(s *State) {
		s.Memory.Last = &instance.Outcome{Operation: instance.Create, Failure: &instance.Failure{Class: instance.Unavailable, Reason: "ProviderUnavailable"}}
		s.Memory.RetryAt = s.Now
	}
	token := func(s *State) { s.Token = Token{Known: true, ReadAt: s.Now, RenewAt: s.Now.Add(time.Hour)} }
	for name, c := range map[string]struct {
		given func(*State)
		write bool
	}{
		"the same create again":              {all(tokenSent, token, failed), false},
		"one of which the status is lost":    {failed, true},
		"one that needs a token no more":     {all(tokenSent, failed, func(s *State) { s.Token.NotNeeded = true }), true},
		"one with the token it never needed": {all(tokenSent, token, failed, recordedWithoutToken), true},
	} {
		t.Run(name, func(t *testing.T) {
			step := Next(given(c.given))
			if step.Do != Create || step.Write != c.write {
				t.Errorf("does %q, written before: %t, want %t", step.Do, step.Write, c.write)
			}
		})
	}
}

// recordedWithoutToken has the status say that the user data needs no token.
func recordedWithoutToken(s *State) {
	c := s.Machine.Status.Condition(clusterv1alpha1.ConditionBootstrapReady)
	c.Reason = clusterv1alpha1.ReasonBootstrapTokenNotNeeded
	s.Machine.Status = s.Machine.Status.set(c, *s)
}

// TestLastKnownState: what a half-way failure brought back is kept until something newer comes
// back.
func TestLastKnownState(t *testing.T) {
	for name, c := range map[string]struct {
		brought string
		class   instance.Class
		want    string
	}{
		"something newer":               {"new", instance.Quota, "new"},
		"something newer, and the last": {"new", instance.SpecInvalid, "new"},
		"something newer, with a doubt": {"new", instance.OutcomeUnknown, "new"},
		"nothing":                       {"", instance.Quota, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			f := instance.Failure{Class: c.class, Reason: "Refused"}
			if c.brought != "" {
				f.LastKnownState = []byte(c.brought)
			}
			old := func(s *State) { s.Machine.Status.LastKnownState = []byte("old") }
			going := func(s *State) { s.Machine.Status.Phase = clusterv1alpha1.MachinePhaseDeleting }
			for what, s := range map[string]State{
				"a machine":             given(intended, old, ended(instance.Create, f)),
				"one that is deleted":   given(intended, deleting, old, ended(instance.Create, f)),
				"one that is on the go": given(intended, deleting, going, old, ended(instance.Create, f)),
			} {
				step := Next(s)
				if got := string(step.Status.LastKnownState); got != c.want || c.want == "new" && !step.Write {
					t.Errorf("%s keeps %q, written %t; want %q", what, got, step.Write, c.want)
				}
				s.Memory = step.Memory
				ended(instance.Delete, instance.Failure{Class: instance.AccountChanged})(&s)
				if got := string(Next(s).Memory.LastKnownState); got != c.brought {
					t.Errorf("%s then remembers %q, want %q", what, got, c.brought)
				}
			}
		})
	}
}

// TestLastOperation: it says what a later process has to know.
func TestLastOperation(t *testing.T) {
	operation := func(op clusterv1alpha1.OperationType, state clusterv1alpha1.OperationState) func(*State) {
		return func(s *State) {
			s.Machine.Status.LastOperation = &clusterv1alpha1.LastOperation{Type: op, State: state, LastUpdateTime: metav1.NewTime(s.Now)}
		}
	}
	leading := func(since time.Duration) func(*State) {
		return func(s *State) { s.Driver.LeadingSince = s.Now.Add(-since) }
	}
	for name, c := range map[string]struct {
		given func(*State)
		want  string
	}{
		"a VM that runs":                       {all(provisioned, func(s *State) { s.Machine.Status.LastOperation = nil }), "Create Succeeded"},
		"one whose create was under way":       {all(provisioned, operation(opCreate, "Processing")), "Create Succeeded"},
		"one that was asked to go":             {all(provisioned, operation(opDelete, "Processing")), "Delete Processing"},
		"a machine on its way out":             {all(provisioned, deleting), "Delete Processing"},
		"one of which nothing was asked":       {all(provisioned, func(s *State) { s.Machine.Status.LastOperation = nil }, deleting), "Delete Processing"},
		"one whose create nobody saw end":      {all(intended, deleting), "Create Processing"},
		"one whose create ended just now":      {all(provisioned, operation(opCreate, "Succeeded"), leading(0), deleting), "Create Succeeded"},
		"one whose create has settled by now":  {all(provisioned, operation(opCreate, "Succeeded"), leading(settle), func(s *State) { s.Machine.Status.LastOperation.LastUpdateTime.Time = s.Driver.LeadingSince }, deleting), "Delete Processing"},
		"one whose create this process asked":  {all(provisioned, operation(opCreate, "Succeeded"), leading(time.Second), deleting), "Delete Processing"},
		"one whose create was refused for all": {all(intended, operation(opCreate, "Failed"), deleting), "Create Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			last := Next(given(c.given)).Status.LastOperation
			if got := string(last.Type) + " " + string(last.State); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestFailureIsToldBeforeTheFirstNode: programs hear of the failure of a machine that never had a
// Node, and of no other.
func TestFailureIsToldBeforeTheFirstNode(t *testing.T) {
	gone := missing(missesUntilGone)
	for name, c := range map[string]struct {
		given func(*State)
		told  bool
	}{
		"it never had one": {all(provisioned, gone), true},
		"it is Running":    {all(running, gone, func(s *State) { s.Node, s.Machine.Status.NodeRef = Node{}, nil }), false},
		"it names one":     {all(provisioned, gone, func(s *State) { s.Machine.Status.NodeRef = &corev1.ObjectReference{Name: "node"} }), false},
		"there is one":     {all(provisioned, gone, joined("False")), false},
	} {
		t.Run(name, func(t *testing.T) {
			step := Next(given(c.given))
			if step.Status.Phase != clusterv1alpha1.MachinePhaseFailed || (step.Status.FailureReason != nil) != c.told {
				t.Errorf("phase %s, failure %+v", step.Status.Phase, step.Status.FailureReason)
			}
		})
	}
}
