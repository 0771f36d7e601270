package machine

import (
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// TestLIFE7_JoinTimeoutSaysWhatTheConsoleSays: the last lines of the console are in the condition
// and in failureMessage, without a bootstrap token, and an event has as much as fits.
func TestLIFE7_JoinTimeoutSaysWhatTheConsoleSays(t *testing.T) {
	t.Parallel()
	const token = "0a1b2c.0123456789abcdef"
	var waiting []string
	for n := range 50 {
		waiting = append(waiting, strings.Repeat("waiting for the API server ", 7)+strings.Repeat("x", n+1))
	}
	b := newBench(t)
	b.cloud.console = []byte(strings.Join(waiting, "\r\n") +
		"\r\n\x1b[1;31mkubelet\x1b[0m: token " + token + " is refused: no route to host\r\nlogin: ")
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a", startup(time.Second)), clusterv1alpha1.MachinePhaseFailed)
	c := b.awaitReason(m, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonJoinTimeout)
	want := "The VM has not become a Ready Node within 1s.\nThe console says:\n" +
		strings.Join(waiting[32:], "\n") + "\nkubelet: token [redacted] is refused: no route to host\nlogin:"
	if c.Message != want || m.Status.FailureMessage == nil || *m.Status.FailureMessage != want {
		t.Errorf("the condition says\n%s\nwant\n%s\nand the failure message is %v", c.Message, want, m.Status.FailureMessage)
	}
	b.cloud.change(func() {
		if b.cloud.asked != 1 {
			t.Errorf("the console was asked for %d times", b.cloud.asked)
		}
	})
	b.await("an event that tells of it", func() (bool, any) {
		var events eventsv1.EventList
		b.check(server.user.List(t.Context(), &events, client.InNamespace(m.Namespace)))
		for _, e := range events.Items {
			if e.Reason == clusterv1alpha1.ReasonJoinTimeout && e.Regarding.Name == m.Name {
				return strings.Contains(e.Note, "The console says: waiting"), e.Note
			}
		}
		return false, len(events.Items)
	})
	b.remove(m)
	b.awaitGone(m)
}

// TestLIFE7_JoinTimeoutDoesNotWaitForAConsole: a driver that does not answer delays the failure by
// the call's deadline and no longer.
func TestLIFE7_JoinTimeoutDoesNotWaitForAConsole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cloud.console, b.cloud.stuck = []byte("login:"), make(chan struct{})
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a", startup(time.Second)), clusterv1alpha1.MachinePhaseFailed)
	c := b.awaitReason(m, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonJoinTimeout)
	if !strings.Contains(c.Message, "\nThe console could not be read: ") {
		t.Errorf("the condition says %q", c.Message)
	}
	b.remove(m)
	b.awaitGone(m)
}
