package lifecycle

import (
	"time"

	"github.com/millwright-dev/millwright/core/instance"
)

// Step is what to do next. The order is: Write before a Create or a Delete is started and after
// everything else; the status is written only when Write says so.
type Step struct {
	Do Action
	// ProviderID is what RecordProviderID writes.
	ProviderID string
	// NewToken: where the machine has no bootstrap token, Create has one minted. Else Create takes
	// the one that is there, or is not done.
	NewToken bool
	// Admit: SyncNode takes the start-up taints away as well.
	Admit bool
	// Status is what the status should say.
	Status Status
	// Write: Status differs from what is written down, and the difference matters.
	Write bool
	// Poll is how often to poll the VM.
	Poll instance.PollInterval
	// RequeueAt is when to ask again if nothing happens before; zero for never. A condition says
	// what is waited for.
	RequeueAt time.Time
	// Events tell of what happened; they hold once Do is done and Status is written.
	Events []Event
	// Memory goes into the next state, whatever becomes of Do.
	Memory Memory
}

// Action is what to do. Its value is the action of Events about the step.
type Action string

// The actions. After each but Nothing, DeleteNow and Release, ask Next again with what came of it.
const (
	// Nothing is to be done: wait for a change, or for Step.RequeueAt.
	Nothing Action = ""
	// Identify sets finalizer and machineUID.
	Identify Action = "Identify"
	// DeleteNow deletes the Machine itself; what that takes is decided once it is on its way out.
	DeleteNow Action = "Dismiss"
	// Create starts CreateMachine, once the status is written.
	Create Action = "Create"
	// RenewToken reads the machine's bootstrap token, and extends it if it is about to expire.
	RenewToken Action = "RenewToken"
	// DeleteToken deletes the machine's bootstrap token.
	DeleteToken Action = "DeleteToken"
	// RecordProviderID sets spec.providerID to Step.ProviderID.
	RecordProviderID Action = "Record"
	// ReadConsole has the driver asked for what the VM has written to its console. The answer wakes
	// the machine.
	ReadConsole Action = "ReadConsole"
	// SyncNode sets on the Node what core sets there, and takes away what it set there before and
	// does not any more.
	SyncNode Action = "SyncNode"
	// CheckDaemonSets looks whether the pods of critical DaemonSets run on the Node.
	CheckDaemonSets Action = "CheckDaemonSets"
	// DrainNode makes one pass of the drain.
	DrainNode Action = "DrainNode"
	// CheckVolumes looks which volumes are attached to the Node.
	CheckVolumes Action = "CheckVolumes"
	// Delete starts DeleteMachine, once the status is written.
	Delete Action = "Delete"
	// RemoveNode deletes the Node.
	RemoveNode Action = "RemoveNode"
	// Release removes the finalizer: the machine is over.
	Release Action = "Release"
)

// Event is something that happened.
type Event struct {
	// Warning events are about something that is in the way.
	Warning         bool
	Reason, Message string
}
