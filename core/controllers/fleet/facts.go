package fleet

import (
	"strconv"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/foreign"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/scale"
)

// Ready says whether the Machine is Ready. One that is being deleted is not counted as such.
func Ready(m *clusterv1alpha1.Machine) bool {
	return m.DeletionTimestamp.IsZero() && apimeta.IsStatusConditionTrue(m.Status.Conditions, clusterv1alpha1.ConditionReady)
}

// Available says whether the Machine has been Ready for minReady, and if it is Ready but not for that long, how long it
// has yet to be; else 0.
func Available(m *clusterv1alpha1.Machine, minReady time.Duration, now time.Time) (bool, time.Duration) {
	if !Ready(m) {
		return false, 0
	}
	since := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionReady).LastTransitionTime
	// The time is written down without its fraction of a second: the second after it is over, too.
	left := since.Add(minReady + time.Second).Sub(now)
	if minReady <= 0 || left <= 0 {
		return true, 0
	}
	return false, left
}

// Marked says whether somebody asked for this Machine to go first.
func Marked(m *clusterv1alpha1.Machine) bool {
	_, ok := m.Annotations[clusterv1alpha1.DeleteMachineAnnotation]
	return ok
}

// Failed says whether the Machine will never work.
func Failed(m *clusterv1alpha1.Machine) bool {
	return m.Status.Phase == clusterv1alpha1.MachinePhaseFailed || m.Status.FailureReason != nil
}

// SpecRefused says whether the Machine failed because of what its spec says.
func SpecRefused(m *clusterv1alpha1.Machine) bool {
	return m.Status.FailureReason != nil && RefusedFor(*m.Status.FailureReason)
}

// RefusedFor says whether a failure of that reason lies in what the Machine's spec says.
func RefusedFor(reason string) bool {
	switch reason {
	case clusterv1alpha1.ReasonSpecInvalid, clusterv1alpha1.ReasonRequestTooLarge:
		return true
	default:
		return false
	}
}

// Facts returns what package scale wants to know of the Machine. The caller knows whether it is Available, and whether it
// is Refused.
func Facts(m *clusterv1alpha1.Machine) scale.Machine {
	return scale.Machine{
		Name:      m.Name,
		UID:       string(m.UID),
		Deleting:  !m.DeletionTimestamp.IsZero(),
		Marked:    Marked(m),
		Failed:    Failed(m),
		Unadopted: unadopted(m),
		HasNode:   m.Status.NodeRef != nil,
		Preserved: SwitchedOn(m, clusterv1alpha1.PreserveMachineAnnotation),
		Stopped:   instanceReason(m) == clusterv1alpha1.ReasonInstanceStopped,
		Priority:  integer(m, clusterv1alpha1.MachinePriorityAnnotation),
		Created:   m.CreationTimestamp.Time,
	}
}

// Signs returns what package health wants to know of the Machine.
func Signs(m *clusterv1alpha1.Machine) health.Signs {
	paused := Paused(m) ||
		apimeta.IsStatusConditionTrue(m.Status.Conditions, clusterv1alpha1.ConditionPaused)
	s := health.Signs{
		Deleting:  !m.DeletionTimestamp.IsZero(),
		Paused:    paused,
		Foreign:   foreign.Of(m) != (foreign.Mark{}),
		Preserved: SwitchedOn(m, clusterv1alpha1.PreserveMachineAnnotation),
		Failed:    Failed(m),
		Refused:   SpecRefused(m),
		Ready:     apimeta.IsStatusConditionTrue(m.Status.Conditions, clusterv1alpha1.ConditionNodeReady),
	}
	switch m.Status.Phase {
	case clusterv1alpha1.MachinePhaseRunning, clusterv1alpha1.MachinePhaseUpdating:
		s.CameUp = true
	case clusterv1alpha1.MachinePhaseUnknown:
		s.CameUp = m.Status.NodeRef != nil
	case clusterv1alpha1.MachinePhaseFailed:
		s.CameUp = !neverCameUp(m)
	}
	switch instanceReason(m) {
	case clusterv1alpha1.ReasonInstanceStopped:
		// The Node may not have noticed yet, or the VM is broken and works nonetheless: nobody can rely on it.
		s.Ready = false
	case clusterv1alpha1.ReasonDriverNotFound, clusterv1alpha1.ReasonDriverUnavailable, clusterv1alpha1.ReasonAccountChanged,
		clusterv1alpha1.ReasonCredentialsInvalid, clusterv1alpha1.ReasonPermissionMissing:
		s.DriverAway = true
	}
	return s
}

// neverCameUp says whether the Machine, which has failed, never worked. Either it never had a Node, and says why in words for
// programs, or it still has the one that did not become Ready in time. Where nobody can tell, it has worked.
func neverCameUp(m *clusterv1alpha1.Machine) bool {
	if m.Status.FailureReason != nil {
		return true
	}
	c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionNodeReady)
	return c != nil && c.Reason == clusterv1alpha1.ReasonJoinTimeout && m.Status.NodeRef != nil
}

// unadopted says whether the Machine came with a VM that is not its own, and has none. While its driver has not answered, nobody knows.
func unadopted(m *clusterv1alpha1.Machine) bool {
	c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionInstanceReady)
	return c != nil && c.Status == metav1.ConditionFalse &&
		(c.Reason == clusterv1alpha1.ReasonNotAdopted || c.Reason == clusterv1alpha1.ReasonMachineUIDTaken)
}

// instanceReason is why the Machine's VM is as it is; empty if nothing is known of it.
func instanceReason(m *clusterv1alpha1.Machine) string {
	c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionInstanceReady)
	if c == nil {
		return ""
	}
	return c.Reason
}

// SwitchedOn says whether the object carries an annotation that switches something on: with any value but "false".
func SwitchedOn(o metav1.Object, annotation string) bool {
	value, ok := o.GetAnnotations()[annotation]
	return ok && value != "false"
}

// integer reads an annotation; 0 if there is none or it is none.
func integer(o metav1.Object, annotation string) int32 {
	n, err := strconv.ParseInt(o.GetAnnotations()[annotation], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// InitialReplicas is the size of a deployment or set that does not say how large it is to be: the least that its
// autoscaler wants it to have, if that is annotated, else 1.
func InitialReplicas(o metav1.Object) int32 {
	if _, ok := o.GetAnnotations()[clusterv1alpha1.NodeGroupMinSizeAnnotation]; !ok {
		return 1
	}
	return max(integer(o, clusterv1alpha1.NodeGroupMinSizeAnnotation), 0)
}

// untroubled says that a reason of InstanceReady means no more than that things take their course.
func untroubled(reason string) bool {
	switch reason {
	case clusterv1alpha1.ReasonInstanceCreating, clusterv1alpha1.ReasonInstanceBooting,
		clusterv1alpha1.ReasonInstanceRunning, clusterv1alpha1.ReasonInstanceUpdating,
		clusterv1alpha1.ReasonInstanceStopped, clusterv1alpha1.ReasonInstanceDeleting,
		clusterv1alpha1.ReasonInstanceDeleted, clusterv1alpha1.ReasonOutcomeUnknown,
		clusterv1alpha1.ReasonOperationPending, clusterv1alpha1.ReasonRateLimited:
		return true
	default:
		return false
	}
}

// Trouble returns what is wrong with the Machine, in the cloud's own words if there are any; empty if nothing is. A
// Machine that is being deleted has no trouble that its set could care about.
func Trouble(m *clusterv1alpha1.Machine) string {
	if !m.DeletionTimestamp.IsZero() {
		return ""
	}
	if m.Status.FailureMessage != nil {
		return *m.Status.FailureMessage
	}
	c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionInstanceReady)
	if c != nil && c.Status != metav1.ConditionTrue && (Failed(m) || !untroubled(c.Reason)) {
		return c.Reason + ": " + c.Message
	}
	if !Failed(m) {
		return ""
	}
	if c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionNodeReady); c != nil && c.Status != metav1.ConditionTrue {
		return c.Reason + ": " + c.Message
	}
	return "failed"
}
