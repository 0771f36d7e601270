package machinedeployment

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/metrics"
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

// recorder makes events and metrics of what was done.
type recorder struct {
	events  events.EventRecorder
	metrics *counters
}

func (r *recorder) recordSetCreated(md *clusterv1alpha1.MachineDeployment, set *clusterv1alpha1.MachineSet) {
	r.metrics.setsCreated.Inc()
	r.events.Eventf(md, set, corev1.EventTypeNormal, eventCreated, actionRoll,
		"Created MachineSet %s with %d Machines", set.Name, ptr.Deref(set.Spec.Replicas, 0))
}

// recordSetScaled tells of a change of size. Of other edits it tells nobody.
func (r *recorder) recordSetScaled(md *clusterv1alpha1.MachineDeployment, e edit) {
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
func (r *recorder) recordProgress(md *clusterv1alpha1.MachineDeployment, written *clusterv1alpha1.MachineDeploymentStatus) {
	was := apimeta.FindStatusCondition(md.Status.Conditions, clusterv1alpha1.ConditionProgressing)
	is := apimeta.FindStatusCondition(written.Conditions, clusterv1alpha1.ConditionProgressing)
	if is == nil || is.Reason != eventStuck || was != nil && was.Reason == eventStuck {
		return
	}
	r.metrics.deadlinesExceeded.Inc()
	r.events.Eventf(md, nil, corev1.EventTypeWarning, eventStuck, actionRoll, "%s", is.Message)
}

// counters count what the controller did.
type counters struct {
	setsCreated, setsScaled, deadlinesExceeded prometheus.Counter
}

func newCounters(registry prometheus.Registerer) (*counters, error) {
	c := metrics.NewSubsystem("machinedeployment", registry)
	made := &counters{
		setsCreated: c.Counter("sets_created_total", "MachineSets created for a template."),
		setsScaled:  c.Counter("sets_scaled_total", "Changes of a MachineSet's size."),

		deadlinesExceeded: c.Counter("progress_deadlines_exceeded_total", "Rollouts that did not get on for progressDeadlineSeconds."),
	}
	return made, c.Err
}
