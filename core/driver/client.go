package driver

import (
	"errors"
	"time"

	"github.com/millwright-dev/millwright/core/instance"
)

// What Reserve, StartCreate and StartDelete return, besides *instance.Failure, when nothing was started.
var (
	// ErrBusy: a mutation of this uid is under way. Its end wakes the machine.
	ErrBusy = errors.New("a call for this machine is under way")
	// ErrThrottled: as many requests as the driver takes are under way. The machine queues and is woken when its
	// turn has come.
	ErrThrottled = errors.New("the driver has as many requests under way as it takes")
)

// Machine is what a driver is told of a machine.
type Machine struct {
	Namespace, Name string
	// UID is spec.machineUID, the idempotency key.
	UID string
	// ProviderID may be empty.
	ProviderID string
	// LastKnownState is what the driver's last answer held.
	LastKnownState []byte
	// Spec is cloudProviderSpec as JSON.
	Spec []byte
	// Secrets are never logged. They and Spec are not copied: change neither after a call.
	Secrets map[string][]byte
}

// Operation is a mutation of a machine.
type Operation string

// The operations.
const (
	Create Operation = "Create"
	Delete Operation = "Delete"
)

// Outcome is how a mutation ended.
type Outcome struct {
	Operation Operation
	// Instance is the driver's answer. nil after a failure, and after a Delete that left nothing: then, and only then,
	// is the machine gone.
	Instance *instance.Instance
	// Failure is nil after a success.
	Failure *instance.Failure
	// Started is when the request was handed to the transport, Ended when its outcome was known.
	Started, Ended time.Time
}

// Progress is how far a machine's mutation is.
type Progress string

// The stages of a mutation.
const (
	// Idle: none is under way and none has ended that was not collected.
	Idle Progress = "Idle"
	// UnderWay: its outcome is open.
	UnderWay Progress = "UnderWay"
	// Ended: the outcome came with this answer, and comes only once.
	Ended Progress = "Ended"
)

// Pace is how often a tracked machine is looked at.
type Pace string

// The paces.
const (
	// Pending: something is expected to change soon.
	Pending Pace = "Pending"
	// Settled: nothing is; a look now and then notices what was done from outside.
	Settled Pace = "Settled"
)

// Observation is what the last look at a machine found.
type Observation struct {
	// Instance is the VM as last seen; nil when it was never seen and when the last look found none.
	Instance *instance.Instance
	// Failure is how the last look failed, nil when it did not. Class NotFound always comes from a GetMachineStatus
	// of this very uid, never from its absence in a list.
	Failure *instance.Failure
	// At is when the last look began: what happened before it is in it.
	At time.Time
	// Looks counts how many looks in a row found the same, from 1. The first and the second NotFound wake the machine, so
	// that one can confirm the other.
	Looks int
}

// Driver is the client of one driver. Its methods return at once, whether the driver is there or not.
type Driver struct {
	name string
}

// Name is the provider that the driver serves.
func (d *Driver) Name() string {
	return d.name
}

// Ready says whether the driver can take calls, and if not, why not, for people, in stable words.
func (d *Driver) Ready() (bool, string) {
	panic("unfinished")
}

// Capabilities are what the driver said of itself when it was last reached; they outlast its absence.
func (d *Driver) Capabilities() Capabilities {
	panic("unfinished")
}

// Reserve sets a request aside for the machine's next mutation: call it before writing down an intent, so that the
// call follows the intent at once instead of queueing behind it. nil means that it is set aside for 30 s; calling again
// renews it. Errors are those of StartCreate.
func (d *Driver) Reserve(m Machine) error {
	panic("unfinished")
}

// StartCreate sends CreateMachine and returns. nil means that a call is under way; its end wakes the machine, and
// Collect has the outcome. Anything else means that nothing was sent: ErrBusy, ErrThrottled, or an *instance.Failure of class
// Unavailable (not connected, not ready, or not enough of the Lease left; the machine is woken when the driver comes
// back) or SpecInvalid (the request is malformed or too large).
// An outcome that nobody collected is dropped.
func (d *Driver) StartCreate(m Machine, userData []byte, tags map[string]string) error {
	panic("unfinished")
}

// StartDelete sends DeleteMachine and returns, as StartCreate does.
func (d *Driver) StartDelete(m Machine) error {
	panic("unfinished")
}

// Collect returns how far the machine's mutation is. With Ended it hands the outcome over, once. Create and Delete that
// succeed count as looks: Observed has their instance while the machine is tracked.
func (d *Driver) Collect(uid string) (Outcome, Progress) {
	panic("unfinished")
}

// Track has the machine looked at until Untrack, and wakes it when what is found changes. Calling it again
// replaces what the driver is told and the pace; a new pace takes effect at once. After a create or delete the first look
// waits as long as its answer asked for.
func (d *Driver) Track(m Machine, pace Pace) {
	panic("unfinished")
}

// Untrack ends Track and drops the observation. Without Track it does nothing.
func (d *Driver) Untrack(uid string) {
	panic("unfinished")
}

// Observed returns what the last look found; false before the first one.
func (d *Driver) Observed(uid string) (Observation, bool) {
	panic("unfinished")
}

// Forget drops everything known of a uid. A call under way goes on and keeps the uid busy until it ends.
func (d *Driver) Forget(uid string) {
	panic("unfinished")
}
