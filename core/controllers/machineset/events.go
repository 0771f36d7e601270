package machineset

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/requeue"
)

// The reasons of events on MachineSets. There is one event for a batch of Machines, not one each.
const (
	eventCreated  = "CreatedMachines"
	eventDeleted  = "DeletedMachines"
	eventFrozen   = "Overshoot"
	eventHalted   = "RemediationHalted"
	eventUpdated  = "UpdatedMachines"
	eventTaken    = "NameTaken"
	eventFailed   = "MachinesNotChanged"
	actionScale   = "Scale"
	actionReplace = "Replace"
	actionUpdate  = "Update"
)

// recordEvents makes events of what was done. A failure that the status shows already makes none:
// it would come with each try.
func (r *reconciler) recordEvents(o *observation, done applied) {
	if done.created > 0 {
		r.events.Eventf(o.set, nil, corev1.EventTypeNormal, eventCreated, actionScale, "Created %d Machines", done.created)
	}
	if done.deleted > 0 {
		action := actionScale
		if o.state.Live() <= o.state.Desired {
			action = actionReplace
		}
		r.metrics.deleted.Add(float64(done.deleted))
		r.events.Eventf(o.set, nil, corev1.EventTypeNormal, eventDeleted, action, "Deleted %d Machines", done.deleted)
	}
	if done.updated > 0 {
		r.metrics.updated.Add(float64(done.updated))
		r.events.Eventf(o.set, nil, corev1.EventTypeNormal, eventUpdated, actionUpdate,
			"Brought %d Machines up to the template in place", done.updated)
	}
	already := apimeta.IsStatusConditionTrue(o.set.Status.Conditions, clusterv1alpha1.ConditionFrozen)
	if done.decision.Frozen && !already && !o.memory.frozen {
		r.metrics.frozen.Inc()
		r.events.Eventf(o.set, nil, corev1.EventTypeWarning, eventFrozen, actionScale, "%s", frozen(o))
	}
	o.memory.frozen = done.decision.Frozen
	halted := done.decision.Health.Reason == health.TooManyUnhealthy
	shown := apimeta.IsStatusConditionFalse(o.set.Status.Conditions, clusterv1alpha1.ConditionRemediationAllowed)
	if halted && !shown && !o.memory.halted {
		r.events.Eventf(o.set, nil, corev1.EventTypeWarning, eventHalted, actionReplace, "%s", r.healthTracker.verdict())
	}
	o.memory.halted = halted
	known := apimeta.IsStatusConditionTrue(o.set.Status.Conditions, clusterv1alpha1.ConditionReplicaFailure)
	for _, err := range []error{done.createErr, done.deleteErr, done.updateErr} {
		if err != nil && !known && !errors.Is(err, requeue.ErrStale) {
			r.events.Eventf(o.set, nil, corev1.EventTypeWarning, eventFailed, actionScale, "%v", err)
		}
	}
}

func (r *reconciler) recordNameTaken(set *clusterv1alpha1.MachineSet, name string) {
	r.events.Eventf(set, nil, corev1.EventTypeWarning, eventTaken, actionScale,
		"Machine %s is not this set's; the next name is used", name)
}
