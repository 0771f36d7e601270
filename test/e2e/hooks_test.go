package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/tier"
)

// Annotations of several owners hold the drain, and then the VM. The leader is killed while they
// do. The one whose owner is gone is named, and the condition says since when the drain is held.
func TestLIFE9_HooksHoldADeletion(t *testing.T) {
	tier.Long(t, "it kills the manager twice and looks for a while")
	t.Parallel()
	const beforeDrain = clusterv1alpha1.PreDrainHookAnnotationPrefix + "/backup"
	const abandoned = clusterv1alpha1.PreDrainHookAnnotationPrefix + "/left"
	const beforeTerminate = clusterv1alpha1.PreTerminateHookAnnotationPrefix + "/volumes"
	u := newUser(t)
	u.apply(deployment("hooked", 1, nil))
	u.awaitRunning(1)
	m := u.machine()
	u.kubectl("annotate", "machine", m.Name, beforeDrain+"=backup-controller", abandoned+"=nobody", beforeTerminate+"=storage-controller")
	u.kubectl("delete", "machine", m.Name, "--wait=false")
	u.awaitHeld(m.Name, clusterv1alpha1.ReasonWaitingForPreDrainHooks, beforeDrain+" of backup-controller")
	since := u.heldSince(m.Name)
	u.staysHeld(m.Name, false)

	u.kubectl("annotate", "machine", m.Name, beforeDrain+"-")
	u.awaitHeld(m.Name, clusterv1alpha1.ReasonWaitingForPreDrainHooks, "taken away: "+abandoned+" of nobody.")
	if again := u.heldSince(m.Name); !again.Equal(since) {
		t.Errorf("the drain is held since %s, and now it is said since %s", since, again)
	}
	u.kubectl("annotate", "machine", m.Name, abandoned+"-")
	u.awaitHeld(m.Name, clusterv1alpha1.ReasonWaitingForPreTerminateHooks, beforeTerminate+" of storage-controller")
	u.staysHeld(m.Name, true)

	u.kubectl("annotate", "machine", m.Name, beforeTerminate+"-")
	u.kubectl("wait", "machine/"+m.Name, "--for=delete", "--timeout=60s")
	u.awaitRunning(1)
}

// awaitHeld waits until the Machine says that a hook holds it, and which.
func (u *user) awaitHeld(name, reason, hook string) {
	u.t.Helper()
	eventually(u.t, "the machine to be held", func(context.Context) error {
		m, found := u.find(name)
		if !found {
			return errors.New("it is gone")
		}
		if text := words(m.Status.Conditions); !strings.Contains(text, reason) || !strings.Contains(text, hook) {
			return errors.New(text)
		}
		return nil
	})
}

// heldSince is since when the Machine says that its drain is held.
func (u *user) heldSince(name string) time.Time {
	u.t.Helper()
	m, _ := u.find(name)
	c := meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionDrained)
	if c == nil {
		u.t.Fatalf("the machine does not speak of its drain:%s", words(m.Status.Conditions))
	}
	return c.LastTransitionTime.Time
}

// staysHeld kills the manager, has it lead again, and looks for a while whether the VM stays.
func (u *user) staysHeld(name string, cordoned bool) {
	u.t.Helper()
	m, _ := u.find(name)
	u.kill([]string{stack.Manager})
	u.revive([]string{stack.Manager})
	u.watchFor(3*time.Minute, func(*clusterv1alpha1.Machine) {})
	var node corev1.Node
	if err := u.client.Get(u.t.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, &node); err != nil {
		u.t.Fatalf("the Node of a machine that is held: %v", err)
	}
	if node.Spec.Unschedulable != cordoned {
		u.t.Errorf("the Node is cordoned: %t, want %t", node.Spec.Unschedulable, cordoned)
	}
	if again, found := u.find(name); !found || again.UID != m.UID {
		u.t.Error("the machine is gone")
	}
	if n := u.callsOf("DeleteVM"); n != 0 {
		u.t.Errorf("%d deletes of a VM that is held", n)
	}
}
