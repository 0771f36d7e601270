package machine

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-dev/millwright/core/lifecycle"
)

// recordEvents emits a step's events and counts its failures. Their texts are lifecycle's, and
// stable.
func (r *reconciler) recordEvents(s *machineScope, step lifecycle.Step) {
	for _, e := range step.Events {
		severity := corev1.EventTypeNormal
		if e.Warning {
			severity = corev1.EventTypeWarning
			r.measures.failed(e.Reason)
		}
		action := string(step.Do)
		if step.Do == lifecycle.Nothing {
			action = "Observe"
		}
		r.events.Eventf(s.machine, nil, severity, e.Reason, action, "%s", e.Message)
	}
}
