package driver

import (
	"context"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/sdk"
)

// consoleLines is how many lines of a console Nova is asked for. Nova counts lines and keeps 100
// KiB; the SDK sends on what the contract allows.
const consoleLines = 1000

// GetConsoleOutput implements sdk.ConsoleReader. A server that never was on a host (409) has
// printed nothing. One whose hypervisor keeps no console (404, 501) is an error in Nova's words.
func (d *Driver) GetConsoleOutput(ctx context.Context, r *driverv1alpha1.GetConsoleOutputRequest) ([]byte, error) {
	scope, found, err := d.known(ctx, r)
	if err != nil || len(found.servers) == 0 {
		return nil, err
	}
	id := found.servers[0].ID
	output, err := servers.ShowConsoleOutput(ctx, scope.Compute, id, servers.ShowConsoleOutputOpts{Length: consoleLines}).Extract()
	if session.IsConflict(err) {
		return nil, nil
	}
	if session.IsGone(err) {
		// Nova says itemNotFound of a console and of a server.
		if again := servers.Get(ctx, scope.Compute, id).Err; session.IsGone(again) {
			return nil, notFound()
		}
	}
	return []byte(output), session.Explain(err)
}

// statusCall is a request about a machine that is to be there.
type statusCall interface {
	machineCall
	GetProvider() *driverv1alpha1.ProviderContext
}

// known returns what there is of a machine. Nothing, and what was made for another name, are
// errors.
func (d *Driver) known(ctx context.Context, r statusCall) (machineScope, *ownedResources, error) {
	scope, err := d.existing(ctx, r, r.GetProvider())
	if err != nil {
		return scope, nil, err
	}
	found, err := d.find(ctx, scope)
	if err != nil {
		return scope, nil, err
	}
	if found.empty() {
		return scope, nil, notFound()
	}
	return scope, found, found.nameTaken(scope.Owner)
}

// notFound says that there is nothing of a machine.
func notFound() error {
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_MACHINE_NOT_FOUND, "The project has no server of this machine.")
}
