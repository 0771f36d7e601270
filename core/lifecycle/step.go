package lifecycle

import "time"

// Step is what to do next. The order is: Write before a Create or a Delete is started and after
// everything else; the status is written only when Write says so.
type Step struct {
	Do Action
	// ProviderID is what Record writes.
	ProviderID string
	// Status is what the status should say.
	Status Status
	// Write: Status differs from what is written down, and the difference matters.
	Write bool
	// Watch is how often to look at the VM.
	Watch Watch
	// Wake is when to ask again if nothing happens before; zero for never. A condition says what is
	// waited for.
	Wake time.Time
	// Events tell of what happened; they hold once Do is done and Status is written.
	Events []Event
	// Memory goes into the next state, whatever becomes of Do.
	Memory Memory
}

// Action is what to do.
type Action string

// The actions. After each but Nothing, Dismiss and Release, ask Next again with what came of it.
const (
	// Nothing is to be done: wait for a change, or for Step.Wake.
	Nothing Action = ""
	// Identify sets finalizer and machineUID.
	Identify Action = "Identify"
	// Dismiss deletes the Machine itself; what that takes is decided once it is on its way out.
	Dismiss Action = "Dismiss"
	// Create starts CreateMachine, once the status is written.
	Create Action = "Create"
	// Record sets spec.providerID to Step.ProviderID.
	Record Action = "Record"
	// Claim sets on the Node what core sets there, and takes away what it set there before and does
	// not any more.
	Claim Action = "Claim"
	// DrainNode makes one pass of the drain.
	DrainNode Action = "DrainNode"
	// Delete starts DeleteMachine, once the status is written.
	Delete Action = "Delete"
	// RemoveNode deletes the Node.
	RemoveNode Action = "RemoveNode"
	// Release removes the finalizer: the machine is over.
	Release Action = "Release"
)

// Watch is how often to look at the VM.
type Watch string

// The watches.
const (
	// Unwatched: there is nothing to see.
	Unwatched Watch = ""
	// Closely: something is expected to change soon.
	Closely Watch = "Closely"
	// Seldom: nothing is expected.
	Seldom Watch = "Seldom"
)

// Event is something that happened.
type Event struct {
	// Warning events are about something that is in the way.
	Warning         bool
	Reason, Message string
}
