package driver

import (
	"context"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/trunks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/session"
)

// removal removes a machine.
type removal struct {
	machineScope
	found *ownedResources
	now   time.Time
}

// proceed takes the next step: the servers, once they are gone the floating IPs and the volumes,
// and once those are gone the ports. It returns what is still there, nil when nothing is.
func (r *removal) proceed(ctx context.Context) (*driverv1alpha1.Machine, error) {
	if r.found.empty() {
		return nil, nil
	}
	for _, s := range r.found.servers {
		if err := r.server(ctx, s); err != nil {
			return nil, err
		}
	}
	if len(r.found.servers) > 0 {
		return r.found.deleting(r.cloud), nil
	}
	for _, f := range r.found.floatingIPs {
		if err := done(floatingips.Delete(ctx, r.cloud.Network, f.ID).ExtractErr()); err != nil {
			return nil, err
		}
	}
	for _, v := range r.found.volumes {
		if err := deleteVolume(ctx, r.cloud, v); err != nil {
			return nil, err
		}
	}
	// The ports go last: by them the machine is found while Cinder cannot be asked.
	if len(r.found.volumes) > 0 {
		left := r.found.deleting(r.cloud)
		left.Message = r.found.volumes[0].left()
		return left, nil
	}
	for _, p := range r.found.ports {
		if p.Trunk != nil {
			if err := done(trunks.Delete(ctx, r.cloud.Network, p.Trunk.ID).ExtractErr()); err != nil {
				return nil, err
			}
		}
		if err := done(ports.Delete(ctx, r.cloud.Network, p.ID).ExtractErr()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// server asks Nova to delete a server, unless Nova is deleting it. A server whose deletion has
// failed is in ERROR, and its deletion is asked for again. A server that Nova keeps for a while, to
// restore it, is deleted for good.
func (r *removal) server(ctx context.Context, s server) error {
	if s.Status == statusSoftDeleted {
		return done(servers.ForceDelete(ctx, r.cloud.Compute, s.ID).ExtractErr())
	}
	if s.leaving(r.now) {
		return nil
	}
	return done(servers.Delete(ctx, r.cloud.Compute, s.ID).ExtractErr())
}

// done explains the error of a deletion; what is gone is deleted.
func done(err error) error {
	if err == nil || session.IsGone(err) {
		return nil
	}
	return session.Explain(err)
}
