package lifecycle

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

const consoleTimeout = 30 * time.Second

// consoles has a driver that reads them.
func consoles(s *State) { s.Driver.ConsoleReadable, s.Driver.ConsoleTimeout = true, consoleTimeout }

// late is a machine that has got no Node in time, asked that the driver is being asked for its
// console.
var (
	late  = all(provisioned, consoles, startup(time.Minute), waited(time.Minute))
	asked = all(late, func(s *State) {
		s.Memory = Next(*s).Memory
		s.Driver.Console = &instance.Console{UnderWay: true}
	})
)

func answered(lines ...string) func(*State) {
	return func(s *State) { s.Driver.Console = &instance.Console{Lines: lines} }
}

// TestConsole shows what becomes of a machine that got no Node in time where its driver can say
// what the console says.
func TestConsole(t *testing.T) {
	const failed, provisionedPhase = clusterv1alpha1.MachinePhaseFailed, clusterv1alpha1.MachinePhaseProvisioned
	const timedOut, waiting = "NodeReady False JoinTimeout", "NodeReady False WaitingForNode"
	checkSteps(t, map[string]wantStep{
		"the console is asked for before the machine fails": {
			given: late, do: ReadConsole, phase: provisionedPhase, condition: waiting, poll: instance.PollSettled, silent: true,
		},
		"not before the time is over": {
			given: all(provisioned, consoles, startup(time.Minute), waited(59*time.Second)),
			phase: provisionedPhase, condition: waiting, poll: instance.PollSettled, requeue: time.Second, silent: true,
		},
		"also where a Node is not Ready": {
			given: all(provisioned, joined("False"), consoles, startup(time.Minute), waited(time.Minute)), do: ReadConsole,
			phase: provisionedPhase, condition: "NodeReady False NodeNotReady", poll: instance.PollSettled,
		},
		"also where a Node does not come back": {
			given: all(running, consoles, startup(time.Minute), func(s *State) { s.Node = Node{} }, waited(time.Minute)), do: ReadConsole,
			phase: clusterv1alpha1.MachinePhaseRunning, condition: "NodeReady False NodeMissing", poll: instance.PollPending,
		},
		"the answer is waited for": {
			given: asked, phase: provisionedPhase, condition: waiting, poll: instance.PollSettled, requeue: consoleTimeout, silent: true,
		},
		"and shown": {
			given: all(asked, answered("kubelet: no route to host", "login:")), phase: failed, condition: timedOut,
			message: "within 1m0s.\nThe console says:\nkubelet: no route to host\nlogin:",
		},
		"also in Ready": {
			given: all(asked, answered("login:")), phase: failed, condition: "Ready False JoinTimeout", message: "The console says:\nlogin:",
		},
		"a console that is empty": {
			given: all(asked, answered()), phase: failed, condition: timedOut, message: "within 1m0s.\nThe console says nothing.",
		},
		"a console that cannot be read": {
			given: all(asked, func(s *State) {
				s.Driver.Console = &instance.Console{Failure: &instance.Failure{Message: "Guest does not have a console available."}}
			}), phase: failed, condition: timedOut, message: "The console could not be read: Guest does not have a console available.",
		},
		"a driver that does not answer is not waited for any longer": {
			given: all(asked, later(consoleTimeout)), phase: failed, condition: timedOut, message: "did not answer in time.",
		},
		"a driver that was not asked after all": {
			given: all(asked, func(s *State) { s.Driver.Console = nil }), phase: failed, condition: timedOut, message: "within 1m0s.",
		},
		"a driver that reads no consoles any more": {
			given: all(asked, func(s *State) { s.Driver.ConsoleReadable = false }), phase: failed, condition: timedOut, message: "within 1m0s.",
		},
		"an answer of before says nothing": {
			given: all(late, answered("of before"), func(s *State) { s.Driver.ConsoleReadable = false }), phase: failed, condition: timedOut,
			message: "within 1m0s.",
		},
		"nor is it mistaken for one of now": {
			given: all(late, answered("of before")), do: ReadConsole, phase: provisionedPhase, condition: waiting, poll: instance.PollSettled, silent: true,
		},
		"a Node that is Ready in the meantime": {
			given: all(asked, joined("True")), phase: clusterv1alpha1.MachinePhaseRunning, condition: "NodeReady True NodeReady", poll: instance.PollSettled,
		},
	})
}

func TestConsoleIsInFailureMessage(t *testing.T) {
	step := Next(given(all(asked, answered("kubelet: no route to host"))))
	if message := step.Status.FailureMessage; message == nil || !strings.HasSuffix(*message, "\nThe console says:\nkubelet: no route to host") {
		t.Errorf("failureMessage %v", message)
	}
	if again := Next(given(all(late, answered("of before"), func(s *State) { s.Driver.ConsoleReadable = false }))); strings.Contains(*again.Status.FailureMessage, "of before") {
		t.Errorf("failureMessage %q", *again.Status.FailureMessage)
	}
}

// TestConsoleDelaysNoFailureForLong: whatever the driver does with the question, it is asked once,
// and the machine fails in the first reconcile after the answer or after the call's deadline in
// which it may fail at all.
func TestConsoleDelaysNoFailureForLong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := given(late)
		var askedAt time.Time
		for s.Machine.Status.Phase != clusterv1alpha1.MachinePhaseFailed {
			step := Next(s)
			s.Memory = step.Memory
			isAnswered := s.Driver.Console != nil && !s.Driver.Console.UnderWay
			isOver := !askedAt.IsZero() && (isAnswered || !s.Now.Before(askedAt.Add(consoleTimeout)))
			hasFailed := step.Status.Phase == clusterv1alpha1.MachinePhaseFailed
			switch {
			case step.Do == ReadConsole && !askedAt.IsZero():
				t.Fatal("the console is asked for twice")
			case step.Do == ReadConsole:
				askedAt, s.Driver.Console = s.Now, &instance.Console{UnderWay: true}
			case hasFailed != (isOver && s.Clock.Runs):
				t.Fatalf("failed %t at %s, asked at %s, answered %t, the clock runs %t", hasFailed, s.Now, askedAt, isAnswered, s.Clock.Runs)
			case hasFailed:
				s.Machine.Status = step.Status
				return
			case s.Clock.Runs && step.RequeueAt.After(askedAt.Add(consoleTimeout)):
				t.Fatalf("asked at %s, and the next look is at %s", askedAt, step.RequeueAt)
			}
			later(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)(&s)
			s.Clock.Runs = rapid.IntRange(0, 3).Draw(t, "runs") > 0
			if s.Driver.Console != nil && rapid.IntRange(0, 3).Draw(t, "answer") == 0 {
				answered("login:")(&s)
			}
		}
	})
}
