package health

import (
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/foreign"
)

// Machine is what counts about one Machine where a set decides which to create and to delete.
type Machine struct {
	Name, UID string
	// Deleting: on its way out. Whether it has failed is not to be seen any more.
	Deleting bool
	// Marked: somebody asked for this one to go first when there are to be fewer.
	Marked bool
	// Failed: it will never work, or a health check wants another one in its place. FailedSince is
	// since when that is known; zero if only just.
	Failed      bool
	FailedSince time.Time
	// Preserved: it is not replaced when it has failed, and goes after others that are like it.
	Preserved bool
	// Stopped: its VM is switched off, so it is not coming up.
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
		Failed:    IsToBeReplaced(m),
		Unadopted: isUnadopted(m),
		HasNode:   m.Status.NodeRef != nil,
		Preserved: annotations.IsPreserved(m),
		Stopped:   InstanceReason(m) == clusterv1alpha1.ReasonInstanceStopped,
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

// IsReady says whether the Machine is Ready and not being deleted.
func IsReady(m *clusterv1alpha1.Machine) bool {
	return m.DeletionTimestamp.IsZero() && apimeta.IsStatusConditionTrue(m.Status.Conditions, clusterv1alpha1.ConditionReady)
}

// IsAvailable says whether the Machine has been Ready for minReady. If it is Ready, but not for
// that long, left is how long it has yet to be; else 0.
func IsAvailable(m *clusterv1alpha1.Machine, minReady time.Duration, now time.Time) (available bool, left time.Duration) {
	if !IsReady(m) {
		return false, 0
	}
	since := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionReady).LastTransitionTime
	// The API server cuts off the fraction of a second, so up to a second more has to pass.
	left = since.Add(minReady + time.Second).Sub(now)
	if minReady <= 0 || left <= 0 {
		return true, 0
	}
	return false, left
}

// HasFailed says whether the Machine will never work.
func HasFailed(m *clusterv1alpha1.Machine) bool {
	return m.Status.Phase == clusterv1alpha1.MachinePhaseFailed || m.Status.FailureReason != nil
}

// IsToBeReplaced says whether the Machine's set is to replace it: it has failed, or a health check
// has found it unhealthy.
func IsToBeReplaced(m *clusterv1alpha1.Machine) bool {
	c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionOwnerRemediated)
	return HasFailed(m) || c != nil && c.Reason == clusterv1alpha1.ReasonWaitingForRemediation
}

// IsSpecRefused says whether the Machine has failed because of its spec.
func IsSpecRefused(m *clusterv1alpha1.Machine) bool {
	return m.Status.FailureReason != nil && IsSpecReason(*m.Status.FailureReason)
}

// IsSpecReason says whether a failure for that reason is one of the Machine's spec.
func IsSpecReason(reason string) bool {
	return reason == clusterv1alpha1.ReasonSpecInvalid || reason == clusterv1alpha1.ReasonRequestTooLarge
}

// InstanceReason is the reason of the Machine's condition InstanceReady; empty if there is none.
func InstanceReason(m *clusterv1alpha1.Machine) string {
	c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionInstanceReady)
	if c == nil {
		return ""
	}
	return c.Reason
}

// SignsOf reads the signs off a Machine.
func SignsOf(m *clusterv1alpha1.Machine) Signs {
	s := Signs{
		Deleting: !m.DeletionTimestamp.IsZero(),
		Paused: annotations.IsPaused(m) ||
			apimeta.IsStatusConditionTrue(m.Status.Conditions, clusterv1alpha1.ConditionPaused),
		Foreign:   foreign.Of(m) != (foreign.Mark{}),
		Preserved: annotations.IsPreserved(m),
		Failed:    IsToBeReplaced(m),
		Refused:   IsSpecRefused(m),
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
	if apimeta.IsStatusConditionFalse(m.Status.Conditions, clusterv1alpha1.ConditionHealthCheckSucceeded) {
		s.Ready = false
	}
	switch InstanceReason(m) {
	case clusterv1alpha1.ReasonInstanceStopped:
		// The Node may not show it yet, or the VM is broken and still works: nobody can rely on it.
		s.Ready = false
	case clusterv1alpha1.ReasonDriverNotFound, clusterv1alpha1.ReasonDriverUnavailable, clusterv1alpha1.ReasonAccountChanged,
		clusterv1alpha1.ReasonCredentialsInvalid, clusterv1alpha1.ReasonPermissionMissing:
		s.DriverAway = true
	}
	return s
}

// neverCameUp says whether the Machine, which has failed, never worked. Then it has a failure
// reason, or still the Node that did not become Ready in time. In doubt it has worked.
func neverCameUp(m *clusterv1alpha1.Machine) bool {
	if m.Status.FailureReason != nil {
		return true
	}
	c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionNodeReady)
	return c != nil && c.Reason == clusterv1alpha1.ReasonJoinTimeout && m.Status.NodeRef != nil
}

// isExpected says whether a Machine without trouble passes through InstanceReady with that reason.
func isExpected(reason string) bool {
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

// Problem is what is wrong with the Machine, in the cloud's own words if there are any. It is
// empty if nothing is wrong, and for a Machine that is being deleted. It is one line: what a
// console says more stands in the Machine itself.
func Problem(m *clusterv1alpha1.Machine) string {
	line, _, _ := strings.Cut(problem(m), "\n")
	return line
}

func problem(m *clusterv1alpha1.Machine) string {
	if !m.DeletionTimestamp.IsZero() {
		return ""
	}
	if m.Status.FailureMessage != nil {
		return *m.Status.FailureMessage
	}
	c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionInstanceReady)
	if isNotTrue(c) && (HasFailed(m) || !isExpected(c.Reason)) {
		return c.Reason + ": " + c.Message
	}
	if c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionHealthCheckSucceeded); isNotTrue(c) {
		return c.Reason + ": " + c.Message
	}
	if !HasFailed(m) {
		return ""
	}
	if c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionNodeReady); isNotTrue(c) {
		return c.Reason + ": " + c.Message
	}
	return "failed"
}

// isNotTrue says whether the condition is there and says something else than True.
func isNotTrue(c *metav1.Condition) bool {
	return c != nil && c.Status != metav1.ConditionTrue
}
