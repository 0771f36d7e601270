package judge

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// notReady takes in what a Node says of itself: since when it has been saying that it is not Ready.
func (w *world) notReady(o *corev1.Node, c Change) {
	says := false
	for _, condition := range o.Status.Conditions {
		says = says || condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionFalse
	}
	last := w.sick[o.Name]
	switch open := !last.from.IsZero() && last.until.IsZero(); {
	case says && !c.Gone && !open:
		w.sick[o.Name] = span{from: c.At}
	case open && (c.Gone || !says):
		w.sick[o.Name] = span{from: last.from, until: c.At}
	}
}

// isToBeReplaced says whether a health check wants the Machine replaced.
func isToBeReplaced(m *clusterv1alpha1.Machine) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionOwnerRemediated)
	return c != nil && c.Reason == clusterv1alpha1.ReasonWaitingForRemediation
}

// isSick says whether a Node says that it is not Ready, or said so at some time from an instant on.
func (w *world) isSick(node string, from time.Time) bool {
	sick := w.sick[node]
	return !sick.from.IsZero() && (sick.until.IsZero() || !sick.until.Before(from))
}

// clockStep is how far apart the readings are of the clock that health checks go by.
const clockStep = 2 * time.Second

// judgeHealth: a health check wants only Machines replaced whose Nodes have said for long enough
// that they are not Ready.
func (j *Judge) judgeHealth(m *machine, o *clusterv1alpha1.Machine, at time.Time) {
	if isToBeReplaced(m.Machine) || !isToBeReplaced(o) {
		return
	}
	sick := j.world.sick[m.node]
	if !j.world.isSick(m.node, j.acts.viewFrom(at, j.options.Patience)) || at.Sub(sick.from) < j.options.UnhealthyAfter-clockStep-slack {
		j.violate(Health, at, "Machine %s is to be replaced; its Node %s has said that it is not Ready since %s, until %s",
			keyOf(o), m.node, sick.from.UTC().Format("15:04:05.000"), sick.until.UTC().Format("15:04:05.000"))
	}
}
