package driver

import (
	"context"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

var _ sdk.Updater = (*Driver)(nil)

// UpdateMachine implements sdk.Updater. This cloud changes nothing on a VM that exists: another
// spec takes another VM.
func (d *Driver) UpdateMachine(ctx context.Context, r *driverv1alpha1.UpdateMachineRequest) (*driverv1alpha1.UpdateMachineResponse, error) {
	want, err := d.parseSpec(r.GetProvider().GetProviderSpec())
	if err != nil {
		return nil, err
	}
	scope := scopeOf(r)
	found, err := d.known(ctx, scope)
	if err != nil {
		return nil, err
	}
	answer := &driverv1alpha1.UpdateMachineResponse{
		Disposition: driverv1alpha1.UpdateDisposition_UPDATE_DISPOSITION_LIVE, Machine: found.machine(),
	}
	if found.conflict(scope, want) != nil {
		answer.Disposition = driverv1alpha1.UpdateDisposition_UPDATE_DISPOSITION_REPLACE
	}
	return answer, nil
}
