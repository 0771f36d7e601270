package scale

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/health"
)

// Machine is what counts about one Machine of the set.
type Machine struct {
	Name, UID string
	// Deleting: on its way out.
	Deleting bool
	// Marked: somebody asked for this one to go first when there are to be fewer.
	Marked bool
	// Failed: it will never work. FailedSince is since when that is known; zero if only just.
	Failed      bool
	FailedSince time.Time
	// Preserved: it is not replaced when it has failed, and goes after others that are like it.
	Preserved bool
	// Stopped: its VM is switched off.
	Stopped bool
	// Refused: it failed because of its spec, and the set would create the next one from the same
	// spec.
	Refused bool
	// Unadopted: it came with the id of a VM that is not its own, or with the uid of another
	// Machine. It will never have a VM.
	Unadopted bool
	// HasNode: it has joined the cluster.
	HasNode bool
	// Available: ready for long enough to count.
	Available bool
	// Priority: those with a lower one go first.
	Priority int32
	Created  time.Time
}

// MachineOf reads a Machine, but for FailedSince, Refused and Available, which the caller knows.
func MachineOf(m *clusterv1alpha1.Machine) Machine {
	return Machine{
		Name:      m.Name,
		UID:       string(m.UID),
		Deleting:  !m.DeletionTimestamp.IsZero(),
		Marked:    annotations.IsMarkedForDeletion(m),
		Failed:    health.HasFailed(m),
		Unadopted: isUnadopted(m),
		HasNode:   m.Status.NodeRef != nil,
		Preserved: annotations.IsPreserved(m),
		Stopped:   health.InstanceReason(m) == clusterv1alpha1.ReasonInstanceStopped,
		Priority:  annotations.Priority(m),
		Created:   m.CreationTimestamp.Time,
	}
}

// isUnadopted is false while the driver has not answered.
func isUnadopted(m *clusterv1alpha1.Machine) bool {
	c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionInstanceReady)
	return c != nil && c.Status == metav1.ConditionFalse &&
		(c.Reason == clusterv1alpha1.ReasonNotAdopted || c.Reason == clusterv1alpha1.ReasonMachineUIDTaken)
}
