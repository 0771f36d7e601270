package driver

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"

	"github.com/millwright-dev/millwright/providers/openstack/session"
)

// floatingIP is what the driver reads of a floating IP of Neutron.
type floatingIP struct {
	ID          string    `json:"id"`
	Description string    `json:"description"`
	PortID      string    `json:"port_id"`
	IP          string    `json:"floating_ip_address"`
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

// makeFloatingIP makes the floating IP of the first port that the driver made. A port takes one: a
// second one is refused. One that was made for a port which is gone is taken along.
func (c *creation) makeFloatingIP(ctx context.Context, ports []string, found []floatingIP) error {
	if c.want.FloatingIPPool == "" {
		return nil
	}
	port := ports[slices.IndexFunc(c.want.Ports, isOwn)] // there is one, says spec
	if slices.ContainsFunc(found, func(f floatingIP) bool { return f.PortID == port }) {
		return nil
	}
	if free := slices.IndexFunc(found, func(f floatingIP) bool { return f.PortID == "" }); free >= 0 {
		return c.explain(floatingips.Update(ctx, c.cloud.Network, found[free].ID, floatingips.UpdateOpts{PortID: &port}).Err)
	}
	network, err := c.cloud.ExternalNetworkID(ctx, "floatingIpPool", c.want.FloatingIPPool)
	if err != nil {
		return err
	}
	_, err = floatingips.Create(ctx, c.cloud.Network, floatingips.CreateOpts{
		FloatingNetworkID: network, PortID: port, Description: c.owner.Description(),
	}).Extract()
	if session.IsFloatingIPTaken(err) {
		return nil // by ours, which the list did not show yet, or by one that somebody else has given it
	}
	return c.explain(err)
}
