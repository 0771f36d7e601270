package machinedeployment_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

func paused(is bool) func(*clusterv1alpha1.MachineDeployment) {
	return func(md *clusterv1alpha1.MachineDeployment) { md.Spec.Paused = is }
}

// A paused deployment rolls nothing out, and is scaled all the same.
func TestROL4_APausedRolloutGoesOnWhenItIsResumed(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 2)
	isComplete(t, c, md, 2)
	controllertest.Patch(t, c, md, func(md *clusterv1alpha1.MachineDeployment) {
		paused(true)(md)
		kubelet("1.36.1")(md)
	})
	progressing(t, c, md, clusterv1alpha1.ReasonDeploymentPaused)
	controllertest.Patch(t, c, md, size(4))
	holding(t, c, 4)
	if revision(md) != 1 {
		t.Errorf("revision %d of a template that is not rolled out", revision(md))
	}
	resumed := c.Conditions(t, md, clusterv1alpha1.ConditionProgressing)
	actor.Up(func(m *clusterv1alpha1.Machine) bool { return m.Spec.Versions.Kubelet == "1.36.0" })
	controllertest.Patch(t, c, md, paused(false))
	holding(t, c, 4, 1)
	c.Eventually(t, func() string {
		if !resumed.Had(clusterv1alpha1.ReasonDeploymentResumed) {
			return "it was not said that the rollout was resumed"
		}
		return ""
	})
	// Paused in the middle: what is there grows by its share, and says still that it is outdated.
	controllertest.Patch(t, c, md, paused(true))
	progressing(t, c, md, clusterv1alpha1.ReasonDeploymentPaused)
	actor.Up(func(*clusterv1alpha1.Machine) bool { return true })
	controllertest.Patch(t, c, md, size(9))
	holding(t, c, 8, 2)
	if got := parts(t, c); got != `["Outdated" "Current"]` {
		t.Errorf("sets say %s", got)
	}
	controllertest.Patch(t, c, md, paused(false))
	isComplete(t, c, md, 9)
	holding(t, c, 0, 9)
}

// What is made paused begins when it is resumed.
func TestROL4_ADeploymentMadePausedBeginsWhenItIsResumed(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 2, paused(true))
	progressing(t, c, md, clusterv1alpha1.ReasonDeploymentPaused)
	if n := len(sets(t, c)); n != 0 {
		t.Errorf("there are %d sets", n)
	}
	controllertest.Patch(t, c, md, paused(false))
	isComplete(t, c, md, 2)
}

// The brake: nothing is written to the sets of a deployment that carries the annotation.
func TestOPS10_AnnotatedDeploymentIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 2)
	isComplete(t, c, md, 2)
	before := sets(t, c)
	brake := func(value string) {
		controllertest.Patch(t, c, md, func(md *clusterv1alpha1.MachineDeployment) {
			md.Annotations[clusterv1alpha1.PausedAnnotation] = value
		})
	}
	brake("true")
	controllertest.Patch(t, c, md, func(md *clusterv1alpha1.MachineDeployment) {
		kubelet("1.36.1")(md)
		furnish(md)
		md.Spec.Replicas = nil
	})
	generation := md.Generation
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(md), md); err != nil {
			return err.Error()
		}
		p := apimeta.FindStatusCondition(md.Status.Conditions, clusterv1alpha1.ConditionPaused)
		if p == nil || p.Reason != clusterv1alpha1.ReasonPausedByAnnotation || p.ObservedGeneration != generation {
			return fmt.Sprintf("conditions: %+v", md.Status.Conditions)
		}
		return ""
	})
	if md.Status.ObservedGeneration >= generation || md.Spec.Replicas != nil {
		t.Errorf("the spec was acted on: %+v", md)
	}
	// Its sets go on.
	deleteOne(t, c)
	c.Eventually(t, func() string {
		machines := c.Machines(t)
		if len(machines) != 2 || machines[0].Status.NodeRef == nil || machines[1].Status.NodeRef == nil || machines[0].DeletionTimestamp != nil {
			return fmt.Sprintf("%d Machines", len(machines))
		}
		return ""
	})
	after := sets(t, c)
	if diff := cmp.Diff(before[0].Spec, after[0].Spec) + cmp.Diff(before[0].Annotations, after[0].Annotations); len(after) != 1 || diff != "" {
		t.Errorf("%d sets, changed: %s", len(after), diff)
	}
	brake("false")
	isComplete(t, c, md, 2)
	if p := apimeta.FindStatusCondition(md.Status.Conditions, clusterv1alpha1.ConditionPaused); p != nil || len(sets(t, c)) != 2 {
		t.Errorf("still %+v; sets: %v", p, tellSets(t, c))
	}
}
