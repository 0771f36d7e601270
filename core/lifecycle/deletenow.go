package lifecycle

import (
	"fmt"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// dismissPatience is how long the news that the machine is on its way out may take.
const dismissPatience = 30 * time.Second

// dismissed: somebody wants the machine to go now. It is deleted as by anybody else.
func (p *plan) dismissed() bool {
	if p.Machine.Dismissed == "" {
		return false
	}
	if at := p.Memory.DismissedAt; !at.IsZero() && p.Now.Before(at.Add(dismissPatience)) {
		return p.waitUntil(at.Add(dismissPatience))
	}
	p.Memory.DismissedAt = p.Now
	p.events = append(p.events, Event{
		Reason: "DeleteNow", Message: fmt.Sprintf("Deleted: %s carries the annotation %s.", p.Machine.Dismissed, clusterv1alpha1.DeleteNowAnnotation),
	})
	return p.act(Dismiss)
}
