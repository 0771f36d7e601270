package lifecycle

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Next returns what to do next.
func Next(s State) Step {
	if !s.Machine.Deleting.IsZero() && !s.Machine.Finalizer {
		return Step{Status: s.Machine.Status}
	}
	p := &plan{State: s, status: s.Machine.Status}
	p.updateMemory()
	p.recordDriverState()
	p.confirmProviderID()
	if p.Machine.Paused != (Pause{}) {
		p.paused()
		return p.finish()
	}
	p.status = p.status.without(clusterv1alpha1.ConditionPaused)
	order := []func() bool{p.identify, p.dismissed, p.failed, p.taken, p.adopted, p.bootstrap, p.instance, p.node}
	if !s.Machine.Deleting.IsZero() {
		order = []func() bool{p.asked, p.recorded, p.forgotten, p.drained, p.deleted, p.removeNode, p.release}
	}
	for _, decided := range order {
		if decided() {
			break
		}
	}
	return p.finish()
}

// plan is a step in the making. Its methods for the parts of a life return true when they have
// decided what to do, or that there is something to wait for; false hands over to the next part.
type plan struct {
	State

	status     Status
	do         Action
	providerID string
	watch      Watch
	wake       time.Time
	events     []Event
	// debounced names what is expected to pass within patience; a status that differs from the
	// recorded one only for that is not written yet.
	debounced    string
	debounceTime time.Duration
	// due: the status is written though it tells a reader nothing new.
	due bool
}

// recordProviderID decides to write down an id that the driver gave.
func (p *plan) recordProviderID(id string) bool {
	p.providerID, p.Memory.Confirmed = id, id
	return p.act(Record)
}

// act decides for an action.
func (p *plan) act(do Action) bool {
	p.do = do
	return true
}

// waitUntil decides to wait: for what the conditions say, until t at the latest. The zero time is
// no bound.
func (p *plan) waitUntil(t time.Time) bool {
	p.wake = earlier(p.wake, t)
	return true
}

// debounceFor says that what keeps the machine waiting should pass within patience.
func (p *plan) debounceFor(what string, debounceTime time.Duration) {
	p.debounced, p.debounceTime = what, debounceTime
}

// condition sets a condition of the status.
func (p *plan) condition(typ string, status metav1.ConditionStatus, reason, message string) {
	p.status = p.status.set(Condition{Type: typ, Status: status, Reason: reason, Message: message})
}

// identify: a machine is known by a finalizer and a uid, both there before anything is made for it.
func (p *plan) identify() bool {
	if p.Machine.Finalizer && p.Machine.UID != "" {
		return false
	}
	return p.act(Identify)
}

// failed: a machine that failed stays so; whoever made it replaces it.
func (p *plan) failed() bool {
	return p.status.Phase == clusterv1alpha1.MachinePhaseFailed
}

// bootstrap: without user data nothing is created.
func (p *plan) bootstrap() bool {
	if p.BootstrapError == "" {
		p.rendered()
		return false
	}
	if p.mayHaveInstance() {
		// A VM has its user data; a change of labels does not reach it any more. Where there is
		// none, create says so.
		return false
	}
	p.setPending()
	return p.showBootstrapError()
}

// showBootstrapError: there is no user data to create a VM with.
func (p *plan) showBootstrapError() bool {
	p.condition(clusterv1alpha1.ConditionBootstrapReady, metav1.ConditionFalse,
		clusterv1alpha1.ReasonBootstrapInvalid, p.BootstrapError)
	// What is wrong may be outside the Machine: the API server it is too new for is upgraded some
	// day.
	return p.waitUntil(p.Now.Add(bootstrapPause))
}

// bootstrapPause lies between two attempts to render user data.
const bootstrapPause = 5 * time.Minute

// rendered: there is user data, whatever there is to be said about it.
func (p *plan) rendered() {
	if p.BootstrapWarning != "" {
		p.condition(clusterv1alpha1.ConditionBootstrapReady, metav1.ConditionTrue,
			clusterv1alpha1.ReasonKubeletTooOld, p.BootstrapWarning)
		return
	}
	p.condition(clusterv1alpha1.ConditionBootstrapReady, metav1.ConditionTrue,
		clusterv1alpha1.ReasonBootstrapRendered, "The user data can be rendered.")
}

// mayHaveInstance says whether anything may exist in the cloud for this machine. A create that was
// refused before it was announced has made nothing.
func (p *plan) mayHaveInstance() bool {
	return p.Machine.ProviderID != "" || p.Machine.Status.LastOperation != nil ||
		p.Memory.Attempted != "" || p.Memory.Possible
}

// setPending gives a status that has none yet the phase Pending and the conditions that wait for
// others.
func (p *plan) setPending() {
	switch p.status.Phase {
	case "":
		p.status.Phase = clusterv1alpha1.MachinePhasePending
	case clusterv1alpha1.MachinePhaseUnknown:
		p.status.Phase = clusterv1alpha1.MachinePhaseProvisioning
	}
	if p.status.Condition(clusterv1alpha1.ConditionInstanceReady).Type == "" {
		p.condition(clusterv1alpha1.ConditionInstanceReady, metav1.ConditionFalse,
			clusterv1alpha1.ReasonInstanceCreating, "The VM has not been asked for yet.")
	}
	if p.status.Condition(clusterv1alpha1.ConditionNodeReady).Type == "" {
		p.condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionFalse, clusterv1alpha1.ReasonWaitingForNode, notRegistered)
	}
}

// finish sums up and settles what is written.
func (p *plan) finish() Step {
	p.ready()
	if p.hasPartialFailure() {
		p.writeDriverState()
	}
	p.writeProviderIDs()
	write := !p.status.Equal(p.Machine.Status) || p.outdated() || p.due
	if p.isDebounced(write) {
		p.status = p.Machine.Status
		if p.hasPartialFailure() {
			p.writeDriverState()
		}
		write = !p.status.Equal(p.Machine.Status)
	}
	if write {
		p.dateOperation()
	}
	if write && p.writes() {
		p.recordEvents()
	}
	return Step{
		Do: p.do, ProviderID: p.providerID, Status: p.status, Write: write, Watch: p.watch,
		Wake: p.wake, Events: p.events, Memory: p.Memory,
	}
}

// writes says whether the status is written with what is done now, and not by a later step only.
func (p *plan) writes() bool {
	return p.do == Nothing || p.do == Create || p.do == Delete
}

// outdated says whether the status of a machine on which nothing else is to be written has not seen
// its spec.
func (p *plan) outdated() bool {
	lasting := p.status.Phase == clusterv1alpha1.MachinePhaseRunning || p.status.Phase == clusterv1alpha1.MachinePhaseFailed ||
		p.status.Phase == clusterv1alpha1.MachinePhasePending
	return lasting && p.Machine.Outdated
}

// ready sets the condition that sums the others up.
func (p *plan) ready() {
	if len(p.status.Conditions) == 0 {
		return
	}
	types := []string{
		clusterv1alpha1.ConditionBootstrapReady, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ConditionNodeReady,
	}
	if !p.Machine.Deleting.IsZero() {
		drained := p.status.Condition(clusterv1alpha1.ConditionDrained)
		instance := p.status.Condition(clusterv1alpha1.ConditionInstanceReady)
		from := drained
		undrained := drained.Reason == clusterv1alpha1.ReasonDrainTimedOut || drained.Reason == clusterv1alpha1.ReasonNodeConflict
		if drained.Status != metav1.ConditionFalse || undrained {
			from = instance
		}
		if from.Reason == "" || from.Status == metav1.ConditionTrue {
			from.Reason, from.Message = clusterv1alpha1.ReasonInstanceDeleting, "The machine is being deleted."
		}
		p.condition(clusterv1alpha1.ConditionReady, metav1.ConditionFalse, from.Reason, from.Message)
		return
	}
	if p.status.Condition(clusterv1alpha1.ConditionNodeReady).Reason == clusterv1alpha1.ReasonJoinTimeout {
		// What failed the machine goes before what merely was not done when it did.
		slices.Reverse(types)
	}
	for _, typ := range types {
		if c := p.status.Condition(typ); c.Type != "" && c.Status != metav1.ConditionTrue {
			p.condition(clusterv1alpha1.ConditionReady, c.Status, c.Reason, c.Message)
			return
		}
	}
	p.condition(clusterv1alpha1.ConditionReady, metav1.ConditionTrue,
		clusterv1alpha1.ReasonMachineReady, "The VM runs and its Node is Ready.")
}

// isDebounced keeps from being written what should pass by itself within seconds.
func (p *plan) isDebounced(write bool) bool {
	if p.do == Create || p.do == Delete {
		// Whether the driver takes the call shows afterwards.
		return p.debounced != "" && write
	}
	if p.do == DrainNode {
		// Nothing is written before the pass, which finds what is in the way: what is remembered of
		// that stays.
		return false
	}
	if p.debounced == "" || !write {
		p.Memory.Passing, p.Memory.PassingSince = "", time.Time{}
		return false
	}
	if p.Memory.Passing != p.debounced {
		p.Memory.Passing, p.Memory.PassingSince = p.debounced, p.Now
	}
	over := p.Memory.PassingSince.Add(p.debounceTime)
	if p.Now.Before(over) {
		p.wake = earlier(p.wake, over)
		return true
	}
	return false
}

// dateOperation dates an operation that has changed.
func (p *plan) dateOperation() {
	recorded := p.Machine.Status.LastOperation
	if p.status.LastOperation == nil || samePointed(p.status.LastOperation, recorded, Operation.equal) {
		return
	}
	dated := *p.status.LastOperation
	dated.At = p.Now
	p.status.LastOperation = &dated
}

// recordEvents tells of what is in the way, once for each reason.
func (p *plan) recordEvents() {
	for _, typ := range []string{
		clusterv1alpha1.ConditionBootstrapReady, clusterv1alpha1.ConditionInstanceReady,
		clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ConditionDrained,
	} {
		is, was := p.status.Condition(typ), p.Machine.Status.Condition(typ)
		if is.Reason != was.Reason && isWarning(is) {
			p.events = append(p.events, Event{Warning: true, Reason: is.Reason, Message: is.Message})
		}
	}
}

// isWarning says whether a condition tells of something that is in the way, or will be.
func isWarning(c Condition) bool {
	showUnverified := c.Type == clusterv1alpha1.ConditionInstanceReady && c.Reason != clusterv1alpha1.ReasonInstanceRunning
	if c.Status == metav1.ConditionTrue {
		return c.Reason == clusterv1alpha1.ReasonKubeletTooOld || showUnverified
	}
	return !expectedReasons[c.Reason]
}

// expectedReasons are the reasons that belong to the normal course of things, or are told by
// others.
var expectedReasons = map[string]bool{
	clusterv1alpha1.ReasonInstanceCreating:  true,
	clusterv1alpha1.ReasonInstanceBooting:   true,
	clusterv1alpha1.ReasonInstanceUpdating:  true,
	clusterv1alpha1.ReasonInstanceDeleting:  true,
	clusterv1alpha1.ReasonDriverUnavailable: true,
	clusterv1alpha1.ReasonOutcomeUnknown:    true,
	clusterv1alpha1.ReasonWaitingForNode:    true,
	clusterv1alpha1.ReasonNodeNotReady:      true,
	clusterv1alpha1.ReasonNodeUnknown:       true,
	clusterv1alpha1.ReasonDraining:          true,
}

// earlier treats zero as never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
