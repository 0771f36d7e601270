package lifecycle

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// describeInstanceReady says how the VM is, or what keeps it from being created or deleted. Nobody
// else sets InstanceReady; controllers/machine writes it (writeStatus). describeDeparting in
// delete.go has the texts of a machine on its way out, adoptionProgress in identity.go those of a
// providerID that nobody has confirmed. A failure shows its own reason, but OutcomeUnknown,
// DriverUnavailable or DataLoss for the classes OutcomeUnknown, Unavailable and DataLoss. The words
// are the driver's, or core's where the driver has not properly answered.
func describeInstanceReady(s State, d decision) metav1.Condition {
	c := s.Machine.Status.Condition(clusterv1alpha1.ConditionInstanceReady)
	if c.Type == "" && d.begun {
		c = instanceNotReady(clusterv1alpha1.ReasonInstanceCreating, "The VM has not been asked for yet.")
	}
	switch {
	case d.failure != nil:
		c = instanceNotReady(reasonOf(d.failure), explain(d.failure))
		if d.failure.Class == instance.OutcomeUnknown || d.failure.Class == instance.Unavailable {
			c.Status = metav1.ConditionUnknown
		}
	case d.instanceReason != "" && s.isDeleting():
		c = describeDeparting(s, d.instanceReason)
	case d.instanceReason != "":
		c = describeArriving(s, d.instanceReason)
	}
	if d.pollFailureShown && c.Status == metav1.ConditionTrue {
		c = withPollFailure(s, c)
	}
	return c
}

func instanceNotReady(reason, message string) metav1.Condition {
	return condition(clusterv1alpha1.ConditionInstanceReady, metav1.ConditionFalse, reason, message)
}

// describeArriving is the condition for a reason, of a machine on its way in.
func describeArriving(s State, reason string) metav1.Condition {
	vm := s.view().instance
	switch reason {
	case clusterv1alpha1.ReasonMachineUIDTaken:
		return instanceNotReady(reason, fmt.Sprintf(
			"spec.machineUID is that of Machine %s, which had it first. Delete this Machine: nothing is done for it, nor to that one's VM.", s.Machine.UIDTaken))
	case clusterv1alpha1.ReasonProviderIDConflict:
		return instanceNotReady(reason, fmt.Sprintf(
			"spec.providerID is %s, and the VM of this Machine is %s, says its driver. Nothing is done to either.", s.Machine.ProviderID, vm.ProviderID))
	case clusterv1alpha1.ReasonInstanceCreating:
		return instanceNotReady(reason, "The VM is being created.")
	case clusterv1alpha1.ReasonInstanceMissing:
		return instanceNotReady(reason, fmt.Sprintf("VM %s is gone, and nobody here deleted it.", s.Machine.ProviderID))
	case clusterv1alpha1.ReasonInstanceRunning:
		return condition(clusterv1alpha1.ConditionInstanceReady, metav1.ConditionTrue, reason, describeRunning(vm))
	case clusterv1alpha1.ReasonInstanceFailed:
		if s.view().isLeftover() && s.Machine.ProviderID == "" {
			return instanceNotReady(reason, words("The create has failed half-way", vm))
		}
		return instanceNotReady(reason, words("The cloud has given the VM up", vm))
	case clusterv1alpha1.ReasonInstanceStopped:
		return instanceNotReady(reason, words("The VM is switched off or broken, and not by Millwright", vm))
	case clusterv1alpha1.ReasonInstanceUpdating:
		return instanceNotReady(reason, words("The cloud is changing the VM", vm))
	case clusterv1alpha1.ReasonInstanceDeleting:
		return instanceNotReady(reason, words("The VM is being deleted, and not by Millwright", vm))
	case clusterv1alpha1.ReasonInstanceBooting:
		return describeBooting(s, vm)
	}
	return describeDriver(s, reason)
}

func describeRunning(vm *instance.Instance) string {
	if len(vm.DuplicateProviderIDs) == 0 {
		return "The VM runs."
	}
	return "The VM runs. The cloud holds more VMs of this machine, which must not be: " +
		strings.Join(vm.DuplicateProviderIDs, ", ") + "."
}

func describeBooting(s State, vm *instance.Instance) metav1.Condition {
	c := instanceNotReady(clusterv1alpha1.ReasonInstanceBooting, "The VM has not been looked at yet.")
	switch {
	case vm == nil:
		c.Status = metav1.ConditionUnknown
	case s.wasSeenRunning():
		c.Message = words("The VM is coming up again", vm)
	default:
		c.Message = words("The cloud has accepted the VM; it does not run yet", vm)
	}
	return c
}

// describeDriver is the condition for a reason that keeps the driver from being asked, or from
// having answered.
func describeDriver(s State, reason string) metav1.Condition {
	switch {
	case reason == clusterv1alpha1.ReasonDriverUnavailable:
		return instanceNotReady(reason, s.Driver.Unready)
	case reason == clusterv1alpha1.ReasonNotAdopted:
		status, message, _ := adoptionProgress(s)
		return condition(clusterv1alpha1.ConditionInstanceReady, status, reason, message)
	case s.Driver.UnknownReason != "":
		reason = s.Driver.UnknownReason
	}
	return instanceNotReady(reason, s.Driver.Unknown)
}

// withPollFailure adds that a VM which was seen to run cannot be polled, or not with the machine's
// own Secrets. It does so where only a person can mend that. A poll that fails says nothing of
// the VM: the machine stays as it is.
func withPollFailure(s State, c metav1.Condition) metav1.Condition {
	const unpolled = "The VM ran when it was last seen. It cannot be looked at: "
	polled, trouble := s.view().failure, s.Driver.Trouble
	switch {
	case polled != nil && polled.Class.IsUnverifiable():
		c.Reason, c.Message = reasonOf(polled), unpolled+explain(polled)
	case trouble != nil && trouble.Class == instance.Precondition:
		c.Reason, c.Message = reasonOf(trouble), unpolled+explain(trouble)
	case s.Driver.Missing != nil:
		c.Reason = reasonOf(s.Driver.Missing)
		c.Message = "The VM runs. Until this is mended only looks and deletes are possible, with a copy of the Secret: " + explain(s.Driver.Missing)
	}
	return c
}

// missesUntilGone is how many polls in a row must find nothing before a VM that was there counts as
// gone.
const missesUntilGone = 2

// view is the VM as this process knows it.
type view struct {
	// instance is nil when none is known.
	instance *instance.Instance
	// at is when the poll began, or the call ended.
	at time.Time
	// polled says that this is what a poll found, and not what a call answered.
	polled bool
	// misses counts how many polls in a row found nothing.
	misses int
	// failure is how the last poll failed.
	failure *instance.Failure
}

// view prefers the last poll to the last answer, unless the poll began before that answer was
// given.
func (s State) view() view {
	last, seen := s.Memory.Last, s.Driver.LastPoll
	if seen != nil && (last == nil || !seen.At.Before(last.Ended)) {
		v := view{at: seen.At, polled: true, instance: seen.Instance, failure: seen.Failure}
		if seen.Failure != nil && seen.Failure.Class == instance.NotFound {
			v.instance, v.misses = nil, seen.Looks
		}
		return v
	}
	if last != nil {
		return view{at: last.Ended, instance: last.Instance, failure: last.Failure}
	}
	return view{}
}

// providerID is that of the VM; empty where none is known, or it has none.
func (v view) providerID() string {
	if v.instance == nil {
		return ""
	}
	return v.instance.ProviderID
}

// isLeftover says whether what is there is only what is left of a create that died half-way.
func (v view) isLeftover() bool {
	return v.instance != nil && v.instance.State == instance.Failed && v.instance.ProviderID == ""
}

// isMissing says whether enough polls in a row found nothing.
func (v view) isMissing() bool {
	return v.misses >= missesUntilGone
}
