package instance

import "time"

// Operation is a call that changes something in the cloud.
type Operation string

// The operations. Their values are those of the API's OperationType.
const (
	Create Operation = "Create"
	Delete Operation = "Delete"
)

// Outcome is how an Operation ended.
type Outcome struct {
	Operation Operation
	// Instance is the driver's answer. It is nil after a failure and after a Delete that left
	// nothing. Only in the latter case is the VM known to be gone.
	Instance *Instance
	// Failure is nil after a success. Class Unavailable says that the request never left core.
	Failure *Failure
	// Started is when the request was handed to the transport, Ended when its outcome was known.
	Started, Ended time.Time
}

// LastKnownState is the state that the driver wants to receive with its next call; nil for none.
func (o *Outcome) LastKnownState() []byte {
	switch {
	case o.Failure != nil:
		return o.Failure.LastKnownState
	case o.Instance != nil:
		return o.Instance.LastKnownState
	}
	return nil
}

// Observation is what the last poll of a machine found.
type Observation struct {
	// Instance is the VM as last seen; nil when it was never seen and when the last poll found
	// none.
	Instance *Instance
	// Failure is how the last poll failed; nil when it did not. Class NotFound always comes from a
	// GetMachineStatus of this very uid, never from its absence in a list.
	Failure *Failure
	// At is when the last poll began: it shows whatever happened before that.
	At time.Time
	// Looks counts, from 1, how many polls in a row found the same. The first and the second
	// NotFound both wake the machine, so that one can confirm the other.
	Looks int
}
