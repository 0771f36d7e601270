package machineset

import (
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/earliest"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/scale"
)

// plan is all that is to be done about the Machines of a set. The zero value is nothing.
type plan struct {
	// decision says how many Machines to create, which to delete, and why not more.
	decision scale.Decision
	// deleteErr is why none of decision.Delete is deleted now.
	deleteErr error
	// update are the Machines to bring up to the template in place.
	update []*clusterv1alpha1.Machine
	// requeue is when to look again; 0 if only an event needs that.
	requeue time.Duration
}

// newPlan decides what is to be done. It reads nothing but the observation, and changes nothing.
func newPlan(o *observation) plan {
	if o.paused {
		return plan{requeue: o.nextAvailable}
	}
	p := plan{decision: scale.Decide(o.state)}
	if o.set.Annotations[clusterv1alpha1.RolloutAnnotation] == clusterv1alpha1.RolloutDwindling {
		// Whoever deletes a Machine of the set wants one of the new template in its place, which
		// another set creates.
		p.decision.Create = 0
	}
	if len(p.decision.Delete) > 0 {
		// Which Machines go is decided again, on what is certain.
		if p.deleteErr = o.confirmErr; p.deleteErr == nil {
			confirmed := scale.Decide(o.confirmed)
			p.decision.Delete, p.decision.Health = confirmed.Delete, confirmed.Health
		}
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
	p.requeue = earliest.Delay(o.nextAvailable, p.decision.Health.Again)
	return p
}

// isHalted says whether failed Machines stay because too much of the whole fleet is unhealthy.
func (p *plan) isHalted() bool { return p.decision.Health.Reason == health.TooManyUnhealthy }
