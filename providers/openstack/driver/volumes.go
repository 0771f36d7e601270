package driver

import (
	"context"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// cinderDrivers are the names under which a cluster knows Cinder's volumes: the CSI driver, and the
// plugin in tree before it.
var cinderDrivers = map[string]bool{"cinder.csi.openstack.org": true, "kubernetes.io/cinder": true}

// ResolveVolumes implements sdk.VolumeResolver. A volume's handle is its id in Cinder.
func (d *Driver) ResolveVolumes(_ context.Context, r *driverv1alpha1.ResolveVolumesRequest) (*driverv1alpha1.ResolveVolumesResponse, error) {
	ids := map[string]string{}
	for _, volume := range r.GetVolumes() {
		if cinderDrivers[volume.GetCsiDriver()] {
			ids[volume.GetName()] = volume.GetVolumeHandle()
		}
	}
	return &driverv1alpha1.ResolveVolumesResponse{VolumeIds: ids}, nil
}
