package driver

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

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

// port is what the driver reads of a port of Neutron.
type port struct {
	ID          string        `json:"id"`
	Name        string        `json:"name"`
	Description string        `json:"description"`
	NetworkID   string        `json:"network_id"`
	MAC         string        `json:"mac_address"`
	DeviceID    string        `json:"device_id"`
	Created     time.Time     `json:"created_at"`
	Tags        []string      `json:"tags"`
	Trunk       *trunkDetails `json:"trunk_details"`
}

type trunkDetails struct {
	ID string `json:"trunk_id"`
}

func (p port) identity() string { return p.ID }

// portsListed lists ports of the project. Who owns a network is shown all ports on it, also those
// of machines of another project.
func portsListed(ctx context.Context, in *session.Session, query url.Values) ([]port, error) {
	query.Set("project_id", in.ProjectID)
	return listing[port](ctx, in.Network, "ports", "ports", query)
}

// portsOf returns the ports of machines by name, the oldest first.
func portsOf(ctx context.Context, where clusterScope, names []string) (map[string][]port, error) {
	found, err := portsListed(ctx, where.cloud, url.Values{"description": {ownership.ClusterDescription(where.cluster)}, "name": names})
	if err != nil {
		return nil, err
	}
	return grouped(found, func(p port) string { return p.Name }, func(a, b port) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	}), nil
}

// portPlan is a port as it shall be.
type portPlan struct {
	want           spec.Port
	mac            string
	network        string
	fixedIPs       []ports.IP
	securityGroups []string
}

// port looks up what a port of the spec names.
func (p planner) port(ctx context.Context, index int) (portPlan, error) {
	planned := portPlan{want: p.want.Ports[index], mac: p.owner.MAC(index)}
	if planned.want.ID != "" {
		return planned, nil
	}
	if err := p.findNetwork(ctx, &planned); err != nil {
		return planned, err
	}
	if planned.want.DisablePortSecurity {
		planned.securityGroups = []string{}
		return planned, nil
	}
	names, field := planned.want.SecurityGroups, planned.want.At+"securityGroups"
	if names == nil {
		names, field = p.want.SecurityGroups, "securityGroups"
	}
	if len(names) == 0 {
		return planned, nil
	}
	var err error
	planned.securityGroups, err = p.cloud.SecurityGroupIDs(ctx, field, names)
	return planned, err
}

// findNetwork finds the network and the subnets of a port. Where the spec names the network, it
// comes first: subnets are looked for within it.
func (p planner) findNetwork(ctx context.Context, planned *portPlan) error {
	want := planned.want
	if want.Network != "" {
		var err error
		if planned.network, err = p.cloud.NetworkID(ctx, want.NetworkField, want.Network); err != nil {
			return err
		}
	}
	for i, fixed := range want.FixedIPs {
		ip := ports.IP{IPAddress: fixed.IPAddress}
		if fixed.Subnet != "" {
			subnet, err := p.subnet(ctx, planned, fmt.Sprintf("%sfixedIPs[%d].subnet", want.At, i), fixed.Subnet)
			if err != nil {
				return err
			}
			ip.SubnetID = subnet
		}
		planned.fixedIPs = append(planned.fixedIPs, ip)
	}
	if want.Subnet != "" {
		subnet, err := p.subnet(ctx, planned, want.SubnetField, want.Subnet)
		if err != nil {
			return err
		}
		planned.fixedIPs = []ports.IP{{SubnetID: subnet}}
	}
	if planned.network != "" {
		return nil
	}
	var err error
	planned.network, err = p.cloud.DefaultNetworkID(ctx, want.NetworkField)
	return err
}

// subnet returns the id of a subnet of the port's network; where that is not known yet, it is the
// subnet's.
func (p planner) subnet(ctx context.Context, planned *portPlan, field string, wanted spec.Reference) (string, error) {
	subnet, err := p.cloud.Subnet(ctx, field, wanted, planned.network)
	if err != nil {
		return "", err
	}
	if planned.network != "" && planned.network != subnet.NetworkID {
		return "", sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND,
			"The subnet "+subnet.Name+" is not in the port's network.", sdk.WithField(field, "Name a subnet of the same network."))
	}
	planned.network = subnet.NetworkID
	return subnet.ID, nil
}

// isOwn says whether a port is the machine's own: one that the driver makes.
func isOwn(p spec.Port) bool { return p.ID == "" }

// knownPorts are the ports that there are before this call: its own that were found, and those that
// the spec brings.
func (c *creation) knownPorts(found []port) []string {
	var ids []string
	for _, p := range found {
		ids = append(ids, p.ID)
	}
	for _, p := range c.want.Ports {
		if p.ID != "" {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// makePorts returns the ids of the ports for the server, in the order of the spec, those that were
// missing made.
func (c *creation) makePorts(ctx context.Context, planned []portPlan, found []port) ([]string, error) {
	var ids []string
	left := slices.Clone(found)
	for _, plan := range planned {
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
			c.driver.attempts.note([]string{made.ID}, c.epoch, false)
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
	return have.MAC == p.mac || have.NetworkID == p.network && !slices.Contains(chosenMACs(c.owner), have.MAC)
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
	made, err := ports.Create(ctx, c.cloud.Network, c.portBody(p, p.mac)).Extract()
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
	holders, err := listing[port](ctx, c.cloud.Network, "ports", "ports", url.Values{"mac_address": {p.mac}, "network_id": {p.network}})
	if err != nil {
		return err
	}
	for _, holder := range holders {
		if holder.Name != c.owner.PortName() {
			return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN,
				"The port "+holder.ID+" has the address of this machine, "+p.mac+", and is called "+strconv.Quote(holder.Name)+": delete it, or give it back its name, "+c.owner.PortName()+".")
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
	made, err := ports.Create(ctx, c.cloud.Network, c.portBody(p, "")).Extract()
	c.noteOutcome(err)
	if err != nil {
		return nil, c.explain(err)
	}
	all, err := c.driver.reads.ports.Get(ctx, c.clusterScope(), c.owner.PortName())
	if err != nil {
		return nil, err
	}
	rival := func(other port) bool {
		return other.ID != made.ID && !slices.Contains(others, other.ID) && c.fits(p, other)
	}
	if !slices.ContainsFunc(all, rival) {
		return made, c.complete(ctx, p, port{ID: made.ID})
	}
	if err := ports.Delete(ctx, c.cloud.Network, made.ID).ExtractErr(); err != nil && !session.IsGone(err) {
		return nil, session.Explain(err)
	}
	return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING, "Another port of this machine has just been made.")
}

// portBody is what Neutron is asked for.
func (c *creation) portBody(p portPlan, mac string) ports.CreateOptsBuilder {
	plain := ports.CreateOpts{
		NetworkID: p.network, Name: c.owner.PortName(), Description: ownership.ClusterDescription(c.owner.Cluster), MACAddress: mac,
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
		if _, err := attributestags.ReplaceAll(ctx, c.cloud.Network, "ports", have.ID, attributestags.ReplaceAllOpts{Tags: p.want.Tags}).Extract(); err != nil {
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
	_, err := trunks.Create(ctx, c.cloud.Network, trunks.CreateOpts{
		PortID: parent.ID, Name: c.owner.PortName(), Description: ownership.ClusterDescription(c.owner.Cluster), Subports: []trunks.Subport{},
	}).Extract()
	return c.explain(err)
}
