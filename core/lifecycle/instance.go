package lifecycle

import (
	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// decideInstance gets the VM: it exists, its providerID is written down, and it runs.
func decideInstance(s State, d decision) (decision, bool) {
	v := s.view()
	if v.instance == nil || v.isLeftover() && s.Machine.ProviderID == "" {
		return decideAbsence(s, d)
	}
	if v.instance.ProviderID != "" && s.Machine.ProviderID == "" {
		d.Events = []Event{{Reason: "Created", Message: "Created VM " + v.instance.ProviderID + "."}}
		return d.recordProviderID(v.instance.ProviderID)
	}
	d.Poll, d.Memory.InstanceSeen = instance.PollPending, true
	if v.instance.State != instance.Creating || !isJustRequested(s) {
		d.observed = v.instance
	}
	switch v.instance.State {
	case instance.Running:
		return afterRunning(s, d), false
	case instance.Failed:
		return d.instanceIs(clusterv1alpha1.ReasonInstanceFailed).fail()
	case instance.Stopping, instance.Stopped:
		return awaitRunning(s, d.instanceIs(clusterv1alpha1.ReasonInstanceStopped))
	case instance.Updating:
		return awaitRunning(s, d.instanceIs(clusterv1alpha1.ReasonInstanceUpdating))
	case instance.Deleting:
		return awaitRunning(s, d.instanceIs(clusterv1alpha1.ReasonInstanceDeleting))
	case instance.Creating:
	}
	return decideBooting(s, d)
}

// decideAbsence: no VM is known of now.
func decideAbsence(s State, d decision) (decision, bool) {
	v := s.view()
	if s.Machine.ProviderID == "" || isHalfCreated(s) && !v.isMissing() {
		return decideCreate(s, d)
	}
	if v.isMissing() {
		return d.instanceIs(clusterv1alpha1.ReasonInstanceMissing).fail()
	}
	if s.wasSeenRunning() {
		// What is written down holds until a poll says otherwise.
		d.Poll, d.pollFailureShown = instance.PollSettled, true
		return d, v.misses > 0
	}
	return awaitFirstPoll(s, d)
}

// isHalfCreated says whether the create failed half-way, yet told a providerID: it is taken up
// again.
func isHalfCreated(s State) bool {
	last := s.Memory.Last
	return last != nil && last.Operation == instance.Create && last.Failure != nil &&
		!s.Memory.InstanceSeen && !s.wasSeenRunning()
}

// awaitFirstPoll: the machine has a providerID, and this process has not seen its VM yet.
func awaitFirstPoll(s State, d decision) (decision, bool) {
	d.Poll = instance.PollPending
	d, waits := awaitDriver(s, d)
	if waits {
		return d, true
	}
	d = d.debounce("look", driverDebounce)
	if f := s.view().failure; f != nil && f.Class != instance.NotFound {
		return d.callFailed(f), true
	}
	return d.instanceIs(clusterv1alpha1.ReasonInstanceBooting), true
}

// afterRunning: the VM is up.
func afterRunning(s State, d decision) decision {
	d = d.instanceIs(clusterv1alpha1.ReasonInstanceRunning)
	d.Poll, d.pollFailureShown = instance.PollSettled, true
	if d.phase != clusterv1alpha1.MachinePhaseRunning {
		d.phase = clusterv1alpha1.MachinePhaseProvisioned
	}
	if last := s.Machine.Status.LastOperation; last == nil || last.Type == clusterv1alpha1.OperationCreate {
		d.operation = clusterv1alpha1.LastOperation{Type: clusterv1alpha1.OperationCreate, State: clusterv1alpha1.OperationSucceeded}
	}
	return d
}

// decideBooting: the cloud has accepted the VM, or it comes up again.
func decideBooting(s State, d decision) (decision, bool) {
	if s.wasSeenRunning() {
		return d.instanceIs(clusterv1alpha1.ReasonInstanceBooting), false
	}
	if f := s.view().failure; f != nil && f.Class.IsUnverifiable() {
		return d.callFailed(f), true
	}
	if !isJustRequested(s) {
		d = d.instanceIs(clusterv1alpha1.ReasonInstanceBooting)
		d.phase = clusterv1alpha1.MachinePhaseProvisioning
	}
	return awaitRunning(s, d)
}

// isJustRequested says whether the status says that the VM is being created. That it boots by now
// is not worth a write.
func isJustRequested(s State) bool {
	return s.Machine.Status.Condition(clusterv1alpha1.ConditionInstanceReady).Reason == clusterv1alpha1.ReasonInstanceCreating
}

// awaitRunning: a VM that does not run now; the Node of a machine that has one is shown all the
// same.
func awaitRunning(s State, d decision) (decision, bool) {
	if s.wasSeenRunning() {
		return d, false
	}
	d, _ = checkStartup(s, d, false)
	return d, true
}
