package driver

import (
	"errors"
	"fmt"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
)

// What Reserve, StartCreate and StartDelete return, besides *instance.Failure and *HeldError, when
// nothing was started.
var (
	// ErrBusy: a mutation of this uid is under way. Its end wakes the machine.
	ErrBusy = errors.New("a call for this machine is under way")
	// ErrThrottled: as many requests as the driver, or the account, takes are under way. The
	// machine queues and is woken when its turn has come.
	ErrThrottled = errors.New("the driver has as many requests under way as it takes")
)

// HeldError says that a call was not sent because others of the same account were just refused for
// a cause that is none of their machines' fault. The machine is woken when its turn has come;
// Failure is in the cloud's words.
type HeldError struct {
	Failure *instance.Failure
}

// Error names the cause.
func (e *HeldError) Error() string {
	return fmt.Sprintf("held back, since the last call of this account failed: %s", e.Failure)
}

// Machine is what a driver is told of a machine.
type Machine = wire.Machine

// Capabilities are what a driver last said of itself.
type Capabilities = connection.Capabilities

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

// Pace is how often a tracked machine is polled.
type Pace = instance.PollInterval

// The paces.
const (
	Pending = instance.PollPending
	Settled = instance.PollSettled
)
