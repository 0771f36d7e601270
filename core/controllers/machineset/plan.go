package machineset

import (
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/conditions"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/scale"
	"github.com/millwright-dev/millwright/core/surge"
)

// plan is all that is to be done about a set. The zero value is nothing.
type plan struct {
	// forget: what this process knows of the set does not hold any more.
	forget bool
	// leaveAlone is what the set has to show of another system that works on it; empty if none
	// does.
	leaveAlone string
	// replicas is the size to write; nil if the set has one.
	replicas *int32
	// ownerChanges are the Machines to adopt and to release.
	ownerChanges []ownership.Change
	// decision says how many Machines to create, which to delete, and why not more.
	decision scale.Decision
	// deleteErr is why none of decision.Delete is deleted now.
	deleteErr error
	// update are the Machines to change in place.
	update []*clusterv1alpha1.Machine
	// report: the status is to show what there is.
	report bool
	// requeue is when to look again; 0 if only an event needs that.
	requeue time.Duration
}

// newPlan decides what is to be done. It reads nothing but the observation, and changes nothing.
func newPlan(o *observation) plan {
	switch {
	case o.isGone:
		return plan{forget: true}
	case o.otherSystem != "":
		return plan{leaveAlone: o.otherSystem}
	case o.rest > 0 && !o.lacksSize():
		return plan{requeue: o.rest}
	case o.lacksSize():
		return plan{replicas: new(o.initialSize())}
	case len(o.ownerChanges) > 0:
		// The cache shows in a moment who is the set's. Who is created before may be one too many.
		return plan{ownerChanges: o.ownerChanges, requeue: requeue.Soon}
	case o.paused:
		return plan{report: true, requeue: o.nextAvailable}
	}
	p := plan{report: true, decision: scale.Decide(o.state)}
	if o.set.Annotations[clusterv1alpha1.RolloutAnnotation] == clusterv1alpha1.RolloutDwindling {
		// Whoever deletes a Machine of the set wants one of the new template in its place, which
		// another set creates.
		p.decision.Create = 0
	}
	if len(p.decision.Delete) > 0 {
		p.confirmDeletes(o)
	}
	leaving := map[string]bool{}
	for i := range p.decision.Delete {
		leaving[p.decision.Delete[i].UID] = true
	}
	for _, m := range o.outdated {
		if !leaving[string(m.UID)] {
			p.update = append(p.update, m)
		}
	}
	p.requeue = requeue.Earlier(o.nextAvailable, p.decision.Health.Again)
	return p
}

// confirmDeletes decides again which Machines go, on what is certain. While nothing is certain,
// deleteErr keeps those that would go.
func (p *plan) confirmDeletes(o *observation) {
	if p.deleteErr = o.confirmErr; p.deleteErr != nil {
		return
	}
	confirmed := scale.Decide(o.confirmed)
	p.decision.Delete, p.decision.Health = confirmed.Delete, confirmed.Health
}

// isHalted says whether failed Machines stay because too much of the whole fleet is unhealthy.
func (p *plan) isHalted() bool { return p.decision.Health.Reason == health.TooManyUnhealthy }

// initialSize is the size of a set that has none. A set that was never looked at gets the initial
// one. Later somebody has dropped the field, and the set keeps as many as it has, without those
// that are replaced already.
func (o *observation) initialSize() int32 {
	if o.set.Status.ObservedGeneration == 0 {
		return annotations.InitialReplicas(o.set)
	}
	live := 0
	for i := range o.machines {
		if o.machines[i].DeletionTimestamp.IsZero() {
			live++
		}
	}
	// No MachineDeployment leaves the size out, so the set stands alone.
	return int32(max(live, len(o.machines)-surge.AloneSpare))
}

// newStatus returns the status as it should be after the plan was carried out.
func newStatus(o *observation, p *plan, done *results) *clusterv1alpha1.MachineSetStatus {
	set := o.set
	status := set.Status.DeepCopy()
	if o.memory.pending.IsSettled() {
		status.ObservedGeneration = set.Generation
	}
	if selector, err := set.Spec.Selector.AsSelector(); err == nil {
		status.Selector = selector.String()
	}
	status.NextIndex = o.memory.names.Next()
	status.Replicas, status.FullyLabeledReplicas, status.ReadyReplicas, status.AvailableReplicas = 0, 0, 0, 0
	template := labels.SelectorFromSet(set.Spec.Template.Labels)
	for i := range o.state.Machines {
		status.Replicas++
		status.AvailableReplicas += oneIf(o.state.Machines[i].Available)
	}
	for i := range o.machines {
		status.FullyLabeledReplicas += oneIf(template.Matches(labels.Set(o.machines[i].Labels)))
		status.ReadyReplicas += oneIf(health.IsReady(&o.machines[i]))
	}
	status.Remediation = writeAttempts(o.memory.attempts)
	setAvailable(status, o)
	setFailure(status, o, p, done)
	setObstacles(status, o, p)
	return status
}

func oneIf(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func setAvailable(status *clusterv1alpha1.MachineSetStatus, o *observation) {
	available := metav1.Condition{
		Type: clusterv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: o.set.Generation,
		Reason: clusterv1alpha1.ReasonMinimumMachinesAvailable, Message: "All Machines are available",
	}
	if int(status.AvailableReplicas) < o.state.Desired {
		available.Status, available.Reason = metav1.ConditionFalse, clusterv1alpha1.ReasonMinimumMachinesUnavailable
		available.Message = "Not all Machines are available"
	}
	apimeta.SetStatusCondition(&status.Conditions, available)
}

func setFailure(status *clusterv1alpha1.MachineSetStatus, o *observation, p *plan, done *results) {
	reason, message := failureOf(o, p, done)
	if reason == "" {
		apimeta.RemoveStatusCondition(&status.Conditions, clusterv1alpha1.ConditionReplicaFailure)
		return
	}
	apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionReplicaFailure, Status: metav1.ConditionTrue, ObservedGeneration: o.set.Generation,
		Reason: reason, Message: conditions.TruncateMessage(message),
	})
}

// failureOf returns what is in the way, the most serious first; nothing if nothing is. Of several
// Machines it names the first by name, so that the message does not change from one moment to the
// next.
func failureOf(o *observation, p *plan, done *results) (reason, message string) {
	switch {
	case done.createErr != nil:
		return clusterv1alpha1.ReasonMachineCreationFailed, done.createErr.Error()
	case done.deleteErr != nil:
		return clusterv1alpha1.ReasonMachineDeletionFailed, done.deleteErr.Error()
	case done.updateErr != nil:
		return clusterv1alpha1.ReasonMachineUpdateFailed, done.updateErr.Error()
	}
	reason = clusterv1alpha1.ReasonMachinesFailed
	first := ""
	for i := range o.machines {
		m := &o.machines[i]
		problem := health.Problem(m)
		isRefused := p.decision.Held && health.IsSpecRefused(m)
		if problem == "" || p.decision.Held && !isRefused || first != "" && first <= m.Name {
			continue
		}
		first, message = m.Name, fmt.Sprintf("Machine %s: %s", m.Name, problem)
	}
	if first == "" {
		return "", ""
	}
	if p.decision.Held {
		reason = clusterv1alpha1.ReasonTemplateInvalid
	}
	if pause := p.decision.Health.Pause; pause > 0 {
		message += fmt.Sprintf(" (none is replaced within %s of the creation of one that failed)", pause)
	}
	return reason, message
}

// setObstacles shows what keeps the set from being worked on, as long as it does.
func setObstacles(status *clusterv1alpha1.MachineSetStatus, o *observation, p *plan) {
	show := func(is bool, c metav1.Condition) {
		if !is {
			apimeta.RemoveStatusCondition(&status.Conditions, c.Type)
			return
		}
		c.ObservedGeneration = o.set.Generation
		apimeta.SetStatusCondition(&status.Conditions, c)
	}
	show(p.isHalted(), metav1.Condition{
		Type: clusterv1alpha1.ConditionRemediationAllowed, Status: metav1.ConditionFalse,
		Reason: clusterv1alpha1.ReasonTooManyUnhealthy, Message: o.haltedMessage(),
	})
	show(p.decision.Frozen, metav1.Condition{
		Type: clusterv1alpha1.ConditionFrozen, Status: metav1.ConditionTrue,
		Reason: clusterv1alpha1.ReasonOvershoot, Message: o.frozenMessage(),
	})
	show(o.paused, conditions.Paused(o.set))
}

// frozenMessage says why nothing is created, in words that change with the limit only.
func (o *observation) frozenMessage() string {
	return fmt.Sprintf("There are far more Machines than there may be: none is created until there are no more than %d, those on "+
		"their way out included", o.state.Bound)
}

// haltedMessage says why nothing is replaced, in words that change with the limit only.
func (o *observation) haltedMessage() string {
	return fmt.Sprintf("More than %s of all Machines that should be healthy are not: no failed Machine is replaced until fewer are",
		o.state.Repair.MaxUnhealthy.String())
}
