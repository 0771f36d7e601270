package lifecycle

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// Patience with what should pass by itself.
const (
	// driverPatience: a driver that restarts, or an answer that was lost.
	driverPatience = 5 * time.Second
	// turnPatience: a driver that takes no more calls at once.
	turnPatience = 2 * time.Minute
	// nodePatience: a Node that has registered and is about to become Ready.
	nodePatience = 30 * time.Second
	// drainPatience: an API server that is busy.
	drainPatience = 10 * time.Second
	// deletePatience: a VM that is being deleted.
	deletePatience = 10 * time.Second
)

// confirmations is how many looks in a row must find nothing before a VM that was there counts as
// gone.
const confirmations = 2

// instance gets the VM: it exists, its providerID is written down, and it runs.
func (p *plan) instance() bool {
	p.setPending()
	v := p.view()
	if v.instance == nil || v.leftover() && p.Machine.ProviderID == "" {
		return p.handleAbsence(v)
	}
	if v.instance.ProviderID != "" && p.Machine.ProviderID == "" {
		p.events = append(p.events, Event{Reason: "Created", Message: "Created VM " + v.instance.ProviderID + "."})
		return p.recordProviderID(v.instance.ProviderID)
	}
	p.watch, p.Memory.Witnessed = Closely, true
	if v.instance.State != instance.Creating || !p.isJustRequested() {
		p.status.LastKnownState = v.instance.LastKnownState
		p.status.Addresses = v.instance.Addresses
	}
	return p.judgeByState(v.instance)
}

// handleAbsence: no VM is known of now.
func (p *plan) handleAbsence(v view) bool {
	if p.Machine.ProviderID == "" || p.isHalfCreated() && v.looks < confirmations {
		return p.create(v)
	}
	p.watch = Closely
	if v.looks >= confirmations {
		return p.fail(clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonInstanceMissing,
			fmt.Sprintf("VM %s is gone, and nobody here deleted it.", p.Machine.ProviderID))
	}
	if p.settled() {
		// What is written down holds until a look says otherwise.
		p.watch = Seldom
		p.showUnverified(v)
		return v.looks > 0
	}
	return p.awaitFirstPoll(v)
}

// isHalfCreated says whether the create failed half-way, yet told a providerID: it is taken up
// again.
func (p *plan) isHalfCreated() bool {
	last := p.Memory.Last
	return last != nil && last.Operation == instance.Create && last.Failure != nil &&
		!p.Memory.Witnessed && !p.settled()
}

// settled says whether the VM was written down as running.
func (p *plan) settled() bool {
	return p.status.Phase == clusterv1alpha1.MachinePhaseProvisioned || p.status.Phase == clusterv1alpha1.MachinePhaseRunning
}

// awaitFirstPoll: the machine has a providerID, and this process has not seen its VM yet.
func (p *plan) awaitFirstPoll(v view) bool {
	switch {
	case p.Driver.Unknown != "":
		p.setInstanceReady(metav1.ConditionFalse, p.Driver.unknownReason(), p.Driver.Unknown)
	case v.failure != nil && v.failure.Class != instance.NotFound:
		p.debounceFor("look", driverPatience)
		p.refused(v.failure)
	default:
		p.debounceFor("look", driverPatience)
		p.setInstanceReady(metav1.ConditionUnknown, clusterv1alpha1.ReasonInstanceBooting, "The VM has not been looked at yet.")
	}
	return p.waitUntil(time.Time{})
}

// create starts a create, or says what keeps it from being started.
func (p *plan) create(v view) bool {
	if p.Driver.Unknown != "" {
		p.setInstanceReady(metav1.ConditionFalse, p.Driver.unknownReason(), p.Driver.Unknown)
		return p.waitUntil(time.Time{})
	}
	if p.Driver.UnderWay {
		return p.waitUntil(time.Time{})
	}
	if p.isStateLost() || p.afterFailedCreate() || p.awaitCreated(v) {
		return true
	}
	if p.BootstrapError != "" {
		return p.showBootstrapError()
	}
	if !p.Driver.Ready {
		p.debounceFor("driver", driverPatience)
		p.setInstanceReady(metav1.ConditionFalse, clusterv1alpha1.ReasonDriverUnavailable, p.Driver.Unready)
		return p.waitUntil(time.Time{})
	}
	if p.Driver.Throttled {
		p.debounceFor("turn", turnPatience)
		return p.waitUntil(time.Time{})
	}
	if p.Driver.Held != nil {
		return p.showBreaker()
	}
	if p.Machine.Status.LastOperation == nil {
		p.debounced = ""
		p.status.Phase = clusterv1alpha1.MachinePhaseProvisioning
		p.status.LastOperation = &Operation{Type: clusterv1alpha1.OperationCreate, State: clusterv1alpha1.OperationProcessing}
		p.setInstanceReady(metav1.ConditionFalse, clusterv1alpha1.ReasonInstanceCreating, "The VM is being created.")
	}
	if p.Machine.Status.LastOperation != nil && p.Memory.Last == nil {
		p.Memory.Possible, p.Memory.Doubt = true, p.Driver.LeadingSince
	}
	p.Memory.Attempted, p.Memory.AttemptedAt = instance.Create, p.Now
	return p.act(Create)
}

// awaitCreated: the cloud has accepted a create that has no VM to show for it. It is asked for
// again, but not at once.
func (p *plan) awaitCreated(v view) bool {
	last := p.Memory.Last
	if last == nil || last.Failure != nil {
		return false
	}
	p.watch = Closely
	if v.instance != nil {
		p.setInstanceReady(metav1.ConditionFalse, clusterv1alpha1.ReasonInstanceFailed, words("The create has failed half-way", v.instance))
	}
	if v.looks >= confirmations || !p.Now.Before(p.Memory.RetryAt) {
		return false
	}
	return p.waitUntil(p.Memory.RetryAt)
}

// afterFailedCreate shows how the last create failed; true when there is no other now.
func (p *plan) afterFailedCreate() bool {
	last := p.Memory.Last
	if last == nil || last.Failure == nil || last.Operation != instance.Create {
		return false
	}
	if last.Failure.Class.IsTerminal() {
		message, state := explain(last.Failure), clusterv1alpha1.OperationFailed
		if !p.Memory.Refused {
			// Whoever deletes the machine has to know that there may be a VM.
			state = clusterv1alpha1.OperationProcessing
		}
		p.status.LastOperation = &Operation{Type: clusterv1alpha1.OperationCreate, State: state, Description: message}
		return p.fail(clusterv1alpha1.ConditionInstanceReady, last.Failure.Reason, message)
	}
	if last.Failure.ProviderID != "" && p.Machine.ProviderID == "" {
		return p.recordProviderID(last.Failure.ProviderID)
	}
	p.refused(last.Failure)
	if p.Now.Before(p.Memory.RetryAt) {
		return p.waitUntil(p.Memory.RetryAt)
	}
	return false
}

// refused shows a failure in the condition InstanceReady. One that is expected to pass is shown
// when it does not.
func (p *plan) refused(f *instance.Failure) {
	status := metav1.ConditionFalse
	switch f.Class {
	case instance.Pending:
		return
	case instance.OutcomeUnknown, instance.Unavailable:
		p.debounceFor("outcome", driverPatience)
		status = metav1.ConditionUnknown
	}
	p.setInstanceReady(status, reasonOf(f), explain(f))
}

// heldPause is when a machine that is held back asks again though nobody woke it: its credentials
// mayHaveInstance have changed.
const heldPause = 30 * time.Second

// showBreaker: calls of the machine's account are refused for a cause that is none of its fault. It
// says so without having called.
func (p *plan) showBreaker() bool {
	if p.Driver.Held.Class == instance.RateLimited {
		p.debounceFor("turn", turnPatience)
	}
	p.refused(p.Driver.Held)
	return p.waitUntil(p.Now.Add(heldPause))
}

// judgeByState judges by the state of the VM.
func (p *plan) judgeByState(vm *instance.Instance) bool {
	switch vm.State {
	case instance.Running:
		p.running(vm)
		return false
	case instance.Failed:
		return p.fail(clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonInstanceFailed, words("The cloud has given the VM up", vm))
	case instance.Stopping, instance.Stopped:
		p.setInstanceReady(metav1.ConditionFalse, clusterv1alpha1.ReasonInstanceStopped, words("The VM is switched off or broken, and not by Millwright", vm))
		return p.awaitRunning()
	case instance.Updating:
		p.setInstanceReady(metav1.ConditionFalse, clusterv1alpha1.ReasonInstanceUpdating, words("The cloud is changing the VM", vm))
		return p.awaitRunning()
	case instance.Deleting:
		p.setInstanceReady(metav1.ConditionFalse, clusterv1alpha1.ReasonInstanceDeleting, words("The VM is being deleted, and not by Millwright", vm))
		return p.awaitRunning()
	case instance.Creating:
	}
	if f := p.view().failure; f != nil && f.Class.IsUnverifiable() && !p.settled() {
		p.refused(f)
		return p.waitUntil(time.Time{})
	}
	if p.settled() {
		p.setInstanceReady(metav1.ConditionFalse, clusterv1alpha1.ReasonInstanceBooting, words("The VM is coming up again", vm))
		return p.awaitRunning()
	}
	if !p.isJustRequested() {
		p.status.Phase = clusterv1alpha1.MachinePhaseProvisioning
		p.setInstanceReady(metav1.ConditionFalse, clusterv1alpha1.ReasonInstanceBooting, words("The cloud has accepted the VM; it does not run yet", vm))
	}
	return p.awaitRunning()
}

// isJustRequested says whether the status says that the VM is being created. That it boots by now
// is not worth a write.
func (p *plan) isJustRequested() bool {
	return p.Machine.Status.Condition(clusterv1alpha1.ConditionInstanceReady).Reason == clusterv1alpha1.ReasonInstanceCreating
}

// awaitRunning: a VM that does not run now; the Node of a machine that has one is shown all the
// same.
func (p *plan) awaitRunning() bool {
	if p.settled() {
		return false
	}
	if p.late(false) {
		return p.failJoin()
	}
	return p.waitUntil(time.Time{})
}

// running: the VM is up.
func (p *plan) running(vm *instance.Instance) {
	p.watch = Seldom
	message := "The VM runs."
	if len(vm.DuplicateProviderIDs) > 0 {
		message = "The VM runs. The cloud holds more VMs of this machine, which must not be: " +
			strings.Join(vm.DuplicateProviderIDs, ", ") + "."
	}
	p.condition(clusterv1alpha1.ConditionInstanceReady, metav1.ConditionTrue, clusterv1alpha1.ReasonInstanceRunning, message)
	p.showUnverified(p.view())
	if p.status.Phase != clusterv1alpha1.MachinePhaseRunning {
		p.status.Phase = clusterv1alpha1.MachinePhaseProvisioned
	}
	if last := p.status.LastOperation; last == nil || last.Type == clusterv1alpha1.OperationCreate {
		p.status.LastOperation = &Operation{Type: clusterv1alpha1.OperationCreate, State: clusterv1alpha1.OperationSucceeded}
	}
}

// showUnverified shows that a VM which was seen to run cannot be looked at, or not with the
// machine's own Secrets, where only a person can mend that. It says nothing of the VM: the machine
// stays as it is.
func (p *plan) showUnverified(v view) {
	is := p.status.Condition(clusterv1alpha1.ConditionInstanceReady)
	switch {
	case is.Status != metav1.ConditionTrue:
	case v.failure != nil && v.failure.Class.IsUnverifiable():
		p.condition(is.Type, is.Status, reasonOf(v.failure), "The VM ran when it was last seen. It cannot be looked at: "+explain(v.failure))
	case p.Driver.Trouble != nil && p.Driver.Trouble.Class == instance.Precondition:
		p.condition(is.Type, is.Status, reasonOf(p.Driver.Trouble), "The VM ran when it was last seen. It cannot be looked at: "+explain(p.Driver.Trouble))
	case p.Driver.Missing != nil:
		p.condition(is.Type, is.Status, reasonOf(p.Driver.Missing),
			"The VM runs. Until this is mended only looks and deletes are possible, with a copy of the Secret: "+explain(p.Driver.Missing))
	}
}

// setInstanceReady sets the condition InstanceReady to something that is not True.
func (p *plan) setInstanceReady(status metav1.ConditionStatus, reason, message string) {
	p.condition(clusterv1alpha1.ConditionInstanceReady, status, reason, message)
}

// fail ends the machine: it will never work, as one condition says. The failure is told to programs
// only of a machine that never had a Node: cluster-autoscaler deletes such machines.
func (p *plan) fail(typ, reason, message string) bool {
	p.watch = Unwatched
	p.condition(typ, metav1.ConditionFalse, reason, message)
	if !p.hadNode() {
		p.status.Failure = &Failure{Reason: reason, Message: message}
	}
	p.status.Phase = clusterv1alpha1.MachinePhaseFailed
	return p.waitUntil(time.Time{})
}

// hadNode says whether the machine has or had a Node.
func (p *plan) hadNode() bool {
	return p.status.Phase == clusterv1alpha1.MachinePhaseRunning || p.status.NodeName != "" || p.Node.Match == NodeFound
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
