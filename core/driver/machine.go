package driver

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/core/instance"
)

// What Reserve, StartCreate and StartDelete return, besides *instance.Failure and *HeldError, when nothing was started.
var (
	// ErrBusy: a mutation of this uid is under way. Its end wakes the machine.
	ErrBusy = errors.New("a call for this machine is under way")
	// ErrThrottled: as many requests as the driver, or the account, takes are under way. The machine queues and is woken when its
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

func (m Machine) key() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
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
	// Failure is nil after a success. Class Unavailable says that the request never left.
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
