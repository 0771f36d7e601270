package driver

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/attributestags"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/portsbinding"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/portsecurity"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/trunks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

// isOwn says whether a port is the machine's own: one that the driver makes.
func isOwn(p spec.Port) bool { return p.ID == "" }

// makeFirstPort makes the machine's first own port, of which there is one. It returns none where
// one has to look: where Neutron refuses the address, which it does when there is such a port, or
// lets nobody choose it.
func (c *creation) makeFirstPort(ctx context.Context) ([]port, error) {
	first := &c.plan.ports[slices.IndexFunc(c.want.Ports, isOwn)]
	c.attempts.begin(c.Owner, locationOf(c.Session, !c.want.HasVolumes()))
	made, err := ports.Create(ctx, c.Network, c.portBody(*first, first.mac)).Extract()
	c.noteOutcome(err)
	first.anyMAC = session.IsMACForbidden(err)
	if session.IsMACInUse(err) || session.IsMACForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.explain(err)
	}
	c.attempts.note([]string{made.ID}, c.epoch(), false)
	return []port{{ID: made.ID, NetworkID: made.NetworkID, MAC: first.mac}}, nil
}

// makePorts returns the ids of the ports for the server, in the order of the spec, those that were
// missing made.
func (c *creation) makePorts(ctx context.Context, found []port) ([]string, error) {
	var ids []string
	left := slices.Clone(found)
	for _, plan := range c.plan.ports {
		if plan.want.ID != "" {
			ids = append(ids, plan.want.ID)
			continue
		}
		have := slices.IndexFunc(left, func(p port) bool { return c.fits(plan, p) })
		if have < 0 {
			made, err := c.makePort(ctx, plan, ids)
			if err != nil {
				return nil, err
			}
			c.attempts.note([]string{made.ID}, c.epoch(), false)
			ids = append(ids, made.ID)
			continue
		}
		ids = append(ids, left[have].ID)
		if err := c.complete(ctx, plan, left[have]); err != nil {
			return nil, err
		}
		left = slices.Delete(left, have, have+1)
	}
	return ids, nil
}

// fits says whether a port of the machine is the one of the plan: by its address, or where that
// could not be chosen by its network.
func (c *creation) fits(p portPlan, have port) bool {
	return have.MAC == p.mac || have.NetworkID == p.network && !slices.Contains(chosenMACs(c.Owner), have.MAC)
}

// chosenMACs are all the addresses that the machine's ports can have been made with.
func chosenMACs(o ownership.Owner) []string {
	var all []string
	for index := range spec.MaxPorts {
		all = append(all, o.MAC(index))
	}
	return all
}

// makePort makes a port, beside those that the machine has already.
func (c *creation) makePort(ctx context.Context, p portPlan, others []string) (*ports.Port, error) {
	if p.anyMAC {
		return c.makePortWithoutMAC(ctx, p, others)
	}
	made, err := ports.Create(ctx, c.Network, c.portBody(p, p.mac)).Extract()
	c.noteOutcome(err)
	if session.IsMACForbidden(err) {
		return c.makePortWithoutMAC(ctx, p, others)
	}
	if session.IsMACInUse(err) {
		return nil, c.explainTakenMAC(ctx, p)
	}
	if err != nil {
		return nil, c.explain(err)
	}
	return made, c.complete(ctx, p, port{ID: made.ID})
}

// explainTakenMAC says who has the machine's address: another call for it, which has been faster,
// or a port that is no longer, or not yet, this machine's by name.
func (c *creation) explainTakenMAC(ctx context.Context, p portPlan) error {
	holders, err := listing[port](ctx, c.Network, "ports", "ports", url.Values{"mac_address": {p.mac}, "network_id": {p.network}})
	if err != nil {
		return err
	}
	for _, holder := range holders {
		if holder.Name != c.PortName() {
			return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN,
				"The port "+holder.ID+" has the address of this machine, "+p.mac+", and is called "+strconv.Quote(holder.Name)+": delete it, or give it back its name, "+c.PortName()+".")
		}
	}
	c.exists = true
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING,
		"A port with the address "+p.mac+", which is this machine's, has just been made in the network "+p.network+".")
}

// makePortWithoutMAC makes a port where addresses must not be chosen. Who then sees another one
// takes his own away: of two who ask at the same time, at most the first is alone when he looks.
// That needs no clocks, and where both give way they come again.
func (c *creation) makePortWithoutMAC(ctx context.Context, p portPlan, others []string) (*ports.Port, error) {
	made, err := ports.Create(ctx, c.Network, c.portBody(p, "")).Extract()
	c.noteOutcome(err)
	if err != nil {
		return nil, c.explain(err)
	}
	all, err := c.reads.ports.Get(ctx, c.clusterScope(), c.PortName())
	if err != nil {
		return nil, err
	}
	rival := func(other port) bool {
		return other.ID != made.ID && !slices.Contains(others, other.ID) && c.fits(p, other)
	}
	if !slices.ContainsFunc(all, rival) {
		return made, c.complete(ctx, p, port{ID: made.ID})
	}
	if err := ports.Delete(ctx, c.Network, made.ID).ExtractErr(); err != nil && !session.IsGone(err) {
		return nil, session.Explain(err)
	}
	return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING, "Another port of this machine has just been made.")
}

// portBody is what Neutron is asked for.
func (c *creation) portBody(p portPlan, mac string) ports.CreateOptsBuilder {
	plain := ports.CreateOpts{
		NetworkID: p.network, Name: c.PortName(), Description: ownership.ClusterDescription(c.Cluster), MACAddress: mac,
	}
	plain.PropagateUplinkStatus = p.want.PropagateUplinkStatus
	if len(p.want.ValueSpecs) > 0 {
		plain.ValueSpecs = &p.want.ValueSpecs
	}
	if len(p.fixedIPs) > 0 {
		plain.FixedIPs = p.fixedIPs
	}
	if p.securityGroups != nil {
		plain.SecurityGroups = &p.securityGroups
	}
	for _, pair := range p.want.AllowedAddressPairs {
		plain.AllowedAddressPairs = append(plain.AllowedAddressPairs, ports.AddressPair{IPAddress: pair.IPAddress, MACAddress: pair.MACAddress})
	}
	var body ports.CreateOptsBuilder = plain
	if p.want.DisablePortSecurity {
		body = portsecurity.PortCreateOptsExt{CreateOptsBuilder: body, PortSecurityEnabled: new(false)}
	}
	if p.want.VNICType == "" && p.want.HostID == "" && len(p.want.Profile) == 0 {
		return body
	}
	return portsbinding.CreateOptsExt{CreateOptsBuilder: body, VNICType: p.want.VNICType, HostID: p.want.HostID, Profile: p.want.Profile}
}

// complete gives a port what Neutron does not take at its creation: tags, and a trunk.
func (c *creation) complete(ctx context.Context, p portPlan, have port) error {
	if slices.ContainsFunc(p.want.Tags, func(tag string) bool { return !slices.Contains(have.Tags, tag) }) {
		if _, err := attributestags.ReplaceAll(ctx, c.Network, "ports", have.ID, attributestags.ReplaceAllOpts{Tags: p.want.Tags}).Extract(); err != nil {
			return c.explain(err)
		}
	}
	return c.makeTrunk(ctx, p, have)
}

// makeTrunk makes the port the parent of a trunk, where the spec wants one and it is none yet.
func (c *creation) makeTrunk(ctx context.Context, p portPlan, parent port) error {
	if !p.want.Trunk || parent.Trunk != nil {
		return nil
	}
	_, err := trunks.Create(ctx, c.Network, trunks.CreateOpts{
		PortID: parent.ID, Name: c.PortName(), Description: ownership.ClusterDescription(c.Cluster), Subports: []trunks.Subport{},
	}).Extract()
	return c.explain(err)
}
