package driver

import (
	"context"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/session"
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
	output, err := servers.ShowConsoleOutput(ctx, scope.cloud.Compute, id, servers.ShowConsoleOutputOpts{Length: consoleLines}).Extract()
	if session.IsConflict(err) {
		return nil, nil
	}
	if session.IsGone(err) {
		// Nova says itemNotFound of a console and of a server.
		if again := servers.Get(ctx, scope.cloud.Compute, id).Err; session.IsGone(again) {
			return nil, notFound()
		}
	}
	return []byte(output), session.Explain(err)
}
