package lifecycle

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// given is a machine of a set, new unless changes say otherwise. It has no bootstrap token, and its
// Node no volumes.
func given(changes ...func(*State)) State {
	s := State{
		Token:   Token{Known: true},
		Now:     epoch.Add(time.Hour),
		Machine: Machine{UID: "uid", Finalizer: true, DrainTimeout: time.Minute, UnreachableAfter: 5 * time.Minute},
		Driver:  Driver{Ready: true, CreateSettle: settle, LeadingSince: epoch},
		Clock:   Clock{Runs: true},
		Volumes: &Volumes{},
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// intended is a machine whose create is written down. As a core that knew of no tokens did, the
// status says nothing of one.
func intended(s *State) {
	s.Machine.Status = Next(given()).Status
	for i := range s.Machine.Status.Conditions {
		if c := &s.Machine.Status.Conditions[i]; c.Type == clusterv1alpha1.ConditionBootstrapReady {
			c.Reason, c.Message = clusterv1alpha1.ReasonBootstrapRendered, "The user data can be rendered."
		}
	}
}

func provisioned(s *State) {
	intended(s)
	s.Machine.ProviderID = "cloud:///1"
	seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Running})(s)
	s.Machine.Status = Next(*s).Status
}

func running(s *State) {
	provisioned(s)
	joined(metav1.ConditionTrue)(s)
	s.Machine.Status = Next(*s).Status
}

func notPolledYet(s *State) { s.Driver.LastPoll = nil }

func deleting(s *State) { s.Machine.DeletionTimestamp = s.Now.Add(-time.Second) }

func joined(ready metav1.ConditionStatus) func(*State) {
	return func(s *State) {
		s.Node = Node{Match: NodeFound, Name: "node", Synced: true, Ready: ready, Reason: "KubeletSays", Message: "its words"}
	}
}

func seen(vm instance.Instance) func(*State) {
	return func(s *State) { s.Driver.LastPoll = &instance.Observation{Instance: &vm, At: s.Now, Looks: 1} }
}

func missing(looks int) func(*State) {
	return func(s *State) {
		s.Driver.LastPoll = &instance.Observation{Failure: &instance.Failure{Class: instance.NotFound}, At: s.Now, Looks: looks}
	}
}

func ended(op instance.Operation, f instance.Failure) func(*State) {
	return func(s *State) {
		s.Driver.Outcome = &instance.Outcome{Operation: op, Started: s.Now.Add(-time.Second), Ended: s.Now, Failure: &f}
	}
}

func succeeded(op instance.Operation, vm *instance.Instance) func(*State) {
	return func(s *State) {
		s.Driver.Outcome = &instance.Outcome{Operation: op, Started: s.Now.Add(-time.Second), Ended: s.Now, Instance: vm}
	}
}

// patient lets time go by that what passes is debounced no more.
func patient(s *State) {
	s.Memory = Next(*s).Memory
	s.Driver.Outcome = nil
	s.Now = s.Now.Add(nodeDebounce)
}

// later lets time go by.
func later(d time.Duration) func(*State) {
	return func(s *State) {
		s.Now = s.Now.Add(d)
		s.Clock.Cluster, s.Clock.Cloud = s.Clock.Cluster+d, s.Clock.Cloud+d
	}
}

// waited has the machine wait for as long; what it was before is what it waits with.
func waited(d time.Duration) func(*State) {
	return func(s *State) {
		s.Memory = Next(*s).Memory
		later(d)(s)
	}
}

// stopped takes back as much of the clock.
func stopped(d time.Duration) func(*State) {
	return func(s *State) { s.Clock.Cluster, s.Clock.Cloud = s.Clock.Cluster-d, s.Clock.Cloud-d }
}

func startup(d time.Duration) func(*State) {
	return func(s *State) { s.Machine.StartupTimeout = d }
}

func driverAway(s *State) { s.Clock.Runs, s.Clock.Away = false, "the driver is not connected" }

// refusedLook has the last look fail; known says whether the VM is known from before.
func refusedLook(class instance.Class, known bool) func(*State) {
	return func(s *State) {
		seen := *s.Driver.LastPoll
		seen.Failure = &instance.Failure{Class: class, Reason: string(class), Message: "other account"}
		if !known {
			seen.Instance = nil
		}
		s.Driver.LastPoll = &seen
	}
}

func all(changes ...func(*State)) func(*State) {
	return func(s *State) {
		for _, change := range changes {
			change(s)
		}
	}
}

// decision is what Next is to make of a state.
type wantStep struct {
	given func(*State)
	do    Action
	// condition is "Type Status Reason", and message a part of its message. They are those that the
	// step writes or leaves.
	condition, message string
	phase              clusterv1alpha1.MachinePhase
	poll               instance.PollInterval
	requeue            time.Duration
	silent             bool // nothing is to be written
}

func checkSteps(t *testing.T, cases map[string]wantStep) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := given(c.given)
			step := Next(s)
			if step.Do != c.do {
				t.Errorf("does %q, want %q", step.Do, c.do)
			}
			if step.Status.Phase != c.phase {
				t.Errorf("phase %q, want %q", step.Status.Phase, c.phase)
			}
			if step.Poll != c.poll {
				t.Errorf("polls %q, want %q", step.Poll, c.poll)
			}
			requeue := time.Duration(0)
			if !step.RequeueAt.IsZero() {
				requeue = step.RequeueAt.Sub(s.Now)
			}
			if requeue > c.requeue || requeue < c.requeue*8/10 {
				t.Errorf("asks again after %s, want %s", requeue, c.requeue)
			}
			if c.silent && step.Write {
				t.Errorf("writes %+v", step.Status)
			}
			if !c.silent && c.do == Nothing && !step.Write {
				t.Error("writes nothing")
			}
			if c.condition == "" {
				return
			}
			typ, rest, _ := strings.Cut(c.condition, " ")
			got := step.Status.Condition(typ)
			if string(got.Status)+" "+got.Reason != rest || !strings.Contains(got.Message, c.message) {
				t.Errorf("%+v, want %s with %q", got, c.condition, c.message)
			}
		})
	}
}
