package machinedeployment

import (
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/rollout"
)

// The reasons of events on MachineDeployments.
const (
	eventCreated = "CreatedMachineSet"
	eventScaled  = "ScaledMachineSet"
	eventStuck   = clusterv1alpha1.ReasonProgressDeadlineExceeded
	actionRoll   = "Roll"
	actionScale  = "Scale"
)

func (r *reconciler) recordSetCreated(md *clusterv1alpha1.MachineDeployment, set *clusterv1alpha1.MachineSet) {
	r.metrics.setsCreated.Inc()
	r.events.Eventf(md, set, corev1.EventTypeNormal, eventCreated, actionRoll,
		"Created MachineSet %s with %d Machines", set.Name, ptr.Deref(set.Spec.Replicas, 0))
}

// recordSetScaled tells of a change of size; other edits are nobody's news.
func (r *reconciler) recordSetScaled(md *clusterv1alpha1.MachineDeployment, e edit) {
	from, to := ptr.Deref(e.from.Spec.Replicas, 0), ptr.Deref(e.to.Spec.Replicas, 0)
	if from == to {
		return
	}
	r.metrics.setsScaled.Inc()
	action := actionScale
	if e.reason == rollout.Rolling {
		action = actionRoll
	}
	r.events.Eventf(md, e.to, corev1.EventTypeNormal, eventScaled, action,
		"Scaled MachineSet %s from %d to %d", e.to.Name, from, to)
}

// recordProgress tells of a rollout that has come to be stuck by the status that was written.
func (r *reconciler) recordProgress(md *clusterv1alpha1.MachineDeployment, written *clusterv1alpha1.MachineDeploymentStatus) {
	was := apimeta.FindStatusCondition(md.Status.Conditions, clusterv1alpha1.ConditionProgressing)
	is := apimeta.FindStatusCondition(written.Conditions, clusterv1alpha1.ConditionProgressing)
	if is == nil || is.Reason != eventStuck || was != nil && was.Reason == eventStuck {
		return
	}
	r.metrics.deadlinesExceeded.Inc()
	r.events.Eventf(md, nil, corev1.EventTypeWarning, eventStuck, actionRoll, "%s", is.Message)
}
