package e2e

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// A machine that somebody wants to go now goes, asked for on the Machine or its Node, and is
// replaced.
func TestLIFE12_DeleteNow(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(deployment("dismissed", 2, nil))
	u.awaitRunning(2)
	machines := u.machines()
	u.kubectl("annotate", "machine", machines[0].Name, clusterv1alpha1.DeleteNowAnnotation+"=")
	u.kubectl("annotate", "node", machines[1].Status.NodeRef.Name, clusterv1alpha1.DeleteNowAnnotation+"=")
	eventually(t, "both machines to go", func(context.Context) error {
		for _, m := range machines {
			if _, found := u.find(m.Name); found {
				return fmt.Errorf("machine %s is there still", m.Name)
			}
		}
		return nil
	})
	u.awaitRunning(2)
	u.checkOneVMEach()
}

// A paused Machine is left alone, also when it is deleted; when it goes on, so does its end.
func TestOPS10_PausedMachine(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(standalone("braked", ""))
	u.awaitRunning(1)
	u.kubectl("annotate", "machine", "braked", clusterv1alpha1.PausedAnnotation+"=")
	u.kubectl("wait", "machine/braked", "--for=condition=Paused", "--timeout=60s")
	u.kubectl("delete", "machine", "braked", "--wait=false")
	eventually(t, "the deletion to be seen", func(context.Context) error {
		m, found := u.find("braked")
		if !found || m.Status.Phase != clusterv1alpha1.MachinePhaseDeleting || !meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1alpha1.ConditionPaused) {
			return fmt.Errorf("found: %t, phase %s%s", found, m.Status.Phase, words(m.Status.Conditions))
		}
		return nil
	})
	if node, err := u.nodeOf("braked"); err != nil || node.Spec.Unschedulable {
		t.Errorf("the Node of a paused machine: %v, %v", node, err)
	}
	if vms := u.resources(t.Context())["vm"]; vms != 1 {
		t.Errorf("%d VMs while its machine is paused", vms)
	}
	u.kubectl("annotate", "machine", "braked", clusterv1alpha1.PausedAnnotation+"-")
	u.awaitGone()
}
