package machinedeployment_test

import (
	"fmt"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

func deadline(seconds int32) func(*clusterv1alpha1.MachineDeployment) {
	return func(md *clusterv1alpha1.MachineDeployment) { md.Spec.ProgressDeadlineSeconds = &seconds }
}

// A rollout that does not get on says so, and for what it waits; when it gets on, that is over.
func TestROL5_ARolloutThatDoesNotGetOnSaysSo(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	stop := manage(t, c)
	md := newDeployment(t, c, 2, deadline(1))
	isComplete(t, c, md, 2)
	actor.Up(func(m *clusterv1alpha1.Machine) bool { return m.Spec.Versions.Kubelet == "1.36.0" })
	controllertest.Patch(t, c, md, kubelet("1.36.1"))
	progressing(t, c, md, clusterv1alpha1.ReasonProgressDeadlineExceeded)
	// On a busy machine the set itself may be observed after the deadline.
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(md), md); err != nil {
			return err.Error()
		}
		p := apimeta.FindStatusCondition(md.Status.Conditions, clusterv1alpha1.ConditionProgressing)
		want := "No progress for 1s: Waiting for Machines of MachineSet " + sets(t, c)[1].Name + " to become available"
		if p == nil || p.Message != want || p.Status != "False" {
			return fmt.Sprintf("Progressing is %+v, want False, %q", p, want)
		}
		return ""
	})
	// A new process does not think that all is well.
	stop()
	manage(t, c)
	seen := c.Conditions(t, md, clusterv1alpha1.ConditionProgressing)
	controllertest.Patch(t, c, md, func(md *clusterv1alpha1.MachineDeployment) { md.Spec.MinReadySeconds = 1 })
	c.Eventually(t, func() string {
		if s := sets(t, c); s[1].Spec.MinReadySeconds != 1 {
			return "the deployment was not looked at"
		}
		return ""
	})
	if seen.Had(clusterv1alpha1.ReasonMachineSetUpdated) {
		t.Error("the new process forgot that the deadline was exceeded")
	}
	actor.Up(func(*clusterv1alpha1.Machine) bool { return true })
	isComplete(t, c, md, 2)
	c.Eventually(t, func() string {
		if !seen.Had(clusterv1alpha1.ReasonMachineSetUpdated) {
			return "it was not said that the rollout gets on"
		}
		return ""
	})
}
