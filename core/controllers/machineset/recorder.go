package machineset

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/metrics"
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

// recorder makes events and metrics of what was done.
type recorder struct {
	events  events.EventRecorder
	metrics *counters
}

// record tells what came of a plan. A failure that the status shows already makes no event: it
// would come with each try.
func (r *recorder) record(o *observation, p *plan, done *results) {
	r.recordChanges(o, done)
	isShown := apimeta.IsStatusConditionTrue(o.set.Status.Conditions, clusterv1alpha1.ConditionFrozen)
	if p.decision.Frozen && !isShown && !o.memory.frozen {
		r.metrics.frozen.Inc()
		r.events.Eventf(o.set, nil, corev1.EventTypeWarning, eventFrozen, actionScale, "%s", o.frozenMessage())
	}
	o.memory.frozen = p.decision.Frozen
	isShown = apimeta.IsStatusConditionFalse(o.set.Status.Conditions, clusterv1alpha1.ConditionRemediationAllowed)
	if p.isHalted() && !isShown && !o.memory.halted {
		r.events.Eventf(o.set, nil, corev1.EventTypeWarning, eventHalted, actionReplace, "%s", o.haltedMessage())
	}
	o.memory.halted = p.isHalted()
	isShown = apimeta.IsStatusConditionTrue(o.set.Status.Conditions, clusterv1alpha1.ConditionReplicaFailure)
	for _, err := range []error{done.createErr, done.deleteErr, done.updateErr} {
		if err != nil && !isShown && !errors.Is(err, requeue.ErrStale) {
			r.events.Eventf(o.set, nil, corev1.EventTypeWarning, eventFailed, actionScale, "%v", err)
		}
	}
}

func (r *recorder) recordChanges(o *observation, done *results) {
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
}

func (r *recorder) recordNameTaken(set *clusterv1alpha1.MachineSet, name string) {
	r.events.Eventf(set, nil, corev1.EventTypeWarning, eventTaken, actionScale,
		"Machine %s is not this set's; the next name is used", name)
}

// counters count what the controller did.
type counters struct {
	created, refused, updated, deleted, frozen prometheus.Counter
}

func newCounters(registry prometheus.Registerer) (*counters, error) {
	c := metrics.NewSubsystem("machineset", registry)
	made := &counters{
		created: c.Counter("machines_created_total", "Machines created."),
		refused: c.Counter("machines_refused_total", "Machines that the API server refused."),
		updated: c.Counter("machines_updated_total", "Machines brought up to their set's template in place."),
		deleted: c.Counter("machines_deleted_total", "Machines whose deletion was begun."),
	}
	made.frozen = c.Counter("freezes_total", "How often a set had to stop creating since far too many Machines were there.")
	return made, c.Err
}

// gauges show how the whole fleet fares.
type gauges struct {
	machines, unhealthy, meltdown prometheus.Gauge
}

func newGauges(registry prometheus.Registerer) (gauges, error) {
	c := metrics.NewSubsystem("fleet", registry)
	made := gauges{
		machines:  c.Gauge("machines", "Machines that should be healthy."),
		unhealthy: c.Gauge("unhealthy_machines", "Machines that should be healthy and are not."),
		meltdown:  c.Gauge("meltdown", "1 while so many Machines are unhealthy that none is replaced."),
	}
	return made, c.Err
}
