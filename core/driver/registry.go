package driver

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Drivers are the configured drivers. Make them with New; safe for use by several goroutines.
type Drivers struct {
	drivers map[string]*Driver
	have    []string
	events  chan event.GenericEvent
}

// New makes a client for each target. It connects to none: that is Start's work, so a driver that is not there yet
// is no error. Two targets of one name, or a target that ParseTarget would refuse, are.
func New(cfg Config, targets []Target) (*Drivers, error) {
	panic("unfinished")
}

// Start keeps the drivers connected and tracked machines looked at until ctx ends; then it cancels every call, whose
// outcome is unknown from then on, and returns nil. It is a controller-runtime Runnable and may be called once.
func (d *Drivers) Start(ctx context.Context) error {
	panic("unfinished")
}

// NeedLeaderElection is true: only a leader calls drivers.
func (d *Drivers) NeedLeaderElection() bool {
	return true
}

// For returns the driver of a provider, connected or not, or *UnknownError.
func (d *Drivers) For(provider string) (*Driver, error) {
	driver, known := d.drivers[provider]
	if !known {
		return nil, &UnknownError{Provider: provider, Have: d.have}
	}
	return driver, nil
}

// Events wakes machines: each event's object has the namespace and the name of a Machine of which a call ended, an
// observation changed, a turn came or the driver came back. Events of one machine are merged while nobody reads. There is one
// channel, for one reader, and it is never closed.
func (d *Drivers) Events() <-chan event.GenericEvent {
	return d.events
}
