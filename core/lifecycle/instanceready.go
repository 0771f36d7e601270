package lifecycle

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// describeInstanceReady says how the VM is, or what keeps it from being created or deleted.
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

// describeDeparting is the condition for a reason, of a machine on its way out.
func describeDeparting(s State, reason string) metav1.Condition {
	last := s.Memory.Last
	switch {
	case reason == clusterv1alpha1.ReasonInstanceForgotten:
		return instanceNotReady(reason, "The annotation "+clusterv1alpha1.ForgetAnnotation+
			" lets the machine go without its VM. This may be left behind in the cloud: "+listLeftovers(s)+".")
	case reason != clusterv1alpha1.ReasonInstanceDeleting:
		return describeDriver(s, reason)
	case s.Machine.Forgotten:
		return instanceNotReady(reason, "A call to the driver is under way; then the machine is forgotten.")
	case s.Driver.UnderWay || last == nil || last.Operation != instance.Delete:
		return instanceNotReady(reason, "The VM is being deleted.")
	case last.Instance == nil:
		return instanceNotReady(reason, "A create whose outcome is unknown may still bring forth a VM; it is waited for, to be deleted.")
	}
	return instanceNotReady(reason, words("The VM is being deleted", last.Instance))
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

// adoptionProgress says how far it is with asking the driver about spec.providerID, and whether
// that should pass by itself soon.
func adoptionProgress(s State) (status metav1.ConditionStatus, message string, passing bool) {
	id, v := s.Machine.ProviderID, s.view()
	switch {
	case isAdoptionDenied(v):
		return metav1.ConditionFalse, fmt.Sprintf("The driver knows no VM of this Machine's machineUID, namespace and name; whether there is a VM %s does not matter. "+
			"Nothing is created in its place: delete this Machine.", id), false
	case v.failure != nil && v.failure.Class != instance.NotFound:
		return metav1.ConditionUnknown, fmt.Sprintf("The driver has not confirmed that VM %s is this Machine's: %s", id, explain(v.failure)), true
	case s.Driver.Trouble != nil:
		return metav1.ConditionUnknown, fmt.Sprintf("The driver cannot be asked whether VM %s is this Machine's: %s", id, explain(s.Driver.Trouble)), false
	case !s.Driver.Ready:
		return metav1.ConditionUnknown, fmt.Sprintf("The driver cannot be asked whether VM %s is this Machine's: %s.", id, s.Driver.Unready), true
	}
	return metav1.ConditionUnknown, fmt.Sprintf("The driver has not been asked yet whether VM %s is this Machine's.", id), true
}

// withPollFailure adds that a VM which was seen to run cannot be polled, or not with the machine's
// own Secrets, where only a person can mend that. It says nothing of the VM: the machine stays as
// it is.
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

// words joins what core says with the cloud's own words.
func words(ours string, vm *instance.Instance) string {
	switch {
	case vm.Message != "":
		return ours + ": " + vm.Message
	case vm.Reason != "":
		return ours + ": " + vm.Reason
	}
	return ours + "."
}

// reasonOf is the condition's reason for a failure.
func reasonOf(f *instance.Failure) string {
	switch f.Class {
	case instance.OutcomeUnknown:
		return clusterv1alpha1.ReasonOutcomeUnknown
	case instance.Unavailable:
		return clusterv1alpha1.ReasonDriverUnavailable
	case instance.DataLoss:
		return clusterv1alpha1.ReasonDataLoss
	default:
		return f.Reason
	}
}

// specPath is where a driver's field paths begin.
const specPath = "spec.providerSpec.value.cloudProviderSpec"

// explain is the failure for people: the cloud's own words, and each wrong field by its whole path.
func explain(f *instance.Failure) string {
	if len(f.Fields) == 0 {
		return f.Message
	}
	lines := make([]string, 0, len(f.Fields))
	for _, field := range f.Fields {
		path := specPath
		if field.Path != "" && !strings.HasPrefix(field.Path, "[") {
			path += "."
		}
		lines = append(lines, path+field.Path+": "+field.Description)
	}
	return strings.Join(lines, "; ")
}
