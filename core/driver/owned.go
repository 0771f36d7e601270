package driver

import (
	"context"
	"errors"

	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
)

// ErrCannotList says that a driver has no ListMachines.
var ErrCannotList = errors.New("the driver cannot list machines")

// ListOwned lists all that the account of m's spec and secrets holds of this cluster, whether a
// Machine is known for it or not. It waits for the driver's answers. An error, ErrCannotList or
// *instance.Failure, means that nothing is known: a list that is not complete, or that holds
// anything that it must not, is none.
func (d *Driver) ListOwned(ctx context.Context, m wire.Machine) ([]wire.OwnedResource, error) {
	s, why := d.connection.Acquire()
	if why != "" {
		return nil, notReady(why)
	}
	defer s.Release()
	if !s.CanList() {
		return nil, ErrCannotList
	}
	machines, failure := d.poller.List(ctx, s, m)
	if failure != nil && failure.Class == instance.Unimplemented {
		return nil, ErrCannotList
	}
	if failure != nil {
		return nil, failure
	}
	all := make([]wire.OwnedResource, 0, len(machines))
	for uid, listed := range machines {
		one, failure := s.Reader().Owned(m, listed)
		if failure != nil {
			return nil, failure
		}
		d.mu.Lock()
		record, known := d.calls[uid]
		one.Busy = known && record.underWay
		d.mu.Unlock()
		all = append(all, one)
	}
	return all, nil
}
