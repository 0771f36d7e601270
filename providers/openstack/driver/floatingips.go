package driver

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/url"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/sdk"
)

// floatingIP is what the driver reads of a floating IP of Neutron.
type floatingIP struct {
	ID          string    `json:"id"`
	Description string    `json:"description"`
	PortID      string    `json:"port_id"`
	IP          string    `json:"floating_ip_address"`
	Revision    int       `json:"revision_number"`
	Created     time.Time `json:"created_at"`
}

func (f floatingIP) identity() string { return f.ID }

// floatingIPsListed lists floating IPs of the project: an administrator is shown all. A Neutron
// without routers has none.
func floatingIPsListed(ctx context.Context, in *session.Session, query url.Values) ([]floatingIP, error) {
	query.Set("project_id", in.ProjectID)
	found, err := listing[floatingIP](ctx, in.Network, "floatingips", "floatingips", query)
	if session.IsWithout(err) {
		return nil, nil
	}
	return found, err
}

// floatingIPsOf returns the floating IPs of machines by description.
func floatingIPsOf(ctx context.Context, where clusterScope, descriptions []string) (map[string][]floatingIP, error) {
	found, err := floatingIPsListed(ctx, where.cloud, url.Values{"description": descriptions})
	if err != nil {
		return nil, err
	}
	return grouped(found, func(f floatingIP) string { return f.Description }, func(a, b floatingIP) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	}), nil
}

// makeFloatingIP gives the first port that the driver made its floating IP, where the spec wants
// one. A port takes one: a second one is refused. One that was made for a port which is gone is
// taken along.
func (c *creation) makeFloatingIP(ctx context.Context, ports []string, found []floatingIP) error {
	if c.want.FloatingIPPool == "" && len(c.want.FloatingIPs) == 0 {
		return nil
	}
	port := ports[slices.IndexFunc(c.want.Ports, isOwn)] // there is one, says spec
	if slices.ContainsFunc(found, func(f floatingIP) bool { return f.PortID == port }) {
		return nil
	}
	if free := slices.IndexFunc(found, func(f floatingIP) bool { return f.PortID == "" }); free >= 0 {
		return c.explain(floatingips.Update(ctx, c.cloud.Network, found[free].ID, floatingips.UpdateOpts{PortID: &port}).Err)
	}
	if len(c.want.FloatingIPs) > 0 {
		taken, err := c.borrowFloatingIP(ctx, port, url.Values{"floating_ip_address": c.want.FloatingIPs})
		if err == nil && !taken {
			err = sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE,
				"None of floatingIPs is free in the project.", sdk.WithField("floatingIPs", "Add a floating IP that is free."))
		}
		return err
	}
	network, err := c.cloud.ExternalNetworkID(ctx, "floatingIpPool", c.want.FloatingIPPool)
	if err != nil {
		return err
	}
	if c.want.FloatingIPReuse {
		if taken, err := c.borrowFloatingIP(ctx, port, url.Values{"floating_network_id": {network}}); taken || err != nil {
			return err
		}
	}
	_, err = floatingips.Create(ctx, c.cloud.Network, floatingips.CreateOpts{
		FloatingNetworkID: network, PortID: port, Description: c.owner.Description(),
	}).Extract()
	if session.IsFloatingIPTaken(err) {
		return nil // by ours, which the list did not show yet, or by one that somebody else has given it
	}
	return c.explain(err)
}

// borrowFloatingIP gives the port a floating IP of the project that is free, and says whether it
// has one. It carries no mark: Neutron takes it from the port when that goes, so that it is given
// back and never deleted. Of two who want it at once, the revision lets one have it.
func (c *creation) borrowFloatingIP(ctx context.Context, port string, query url.Values) (bool, error) {
	all, err := floatingIPsListed(ctx, c.cloud, query)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(all, func(f floatingIP) bool { return f.PortID == port }) {
		return true, nil
	}
	free := slices.DeleteFunc(all, func(f floatingIP) bool { return f.PortID != "" || ownership.IsMarked(f.Description) })
	rand.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	for _, f := range free {
		err := floatingips.Update(ctx, c.cloud.Network, f.ID, floatingips.UpdateOpts{PortID: &port, RevisionNumber: &f.Revision}).Err
		if err == nil {
			return true, nil
		}
		if !session.IsChanged(err) && !session.IsGone(err) {
			return false, c.explain(err)
		}
	}
	return false, nil
}
