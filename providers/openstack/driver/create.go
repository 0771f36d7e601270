package driver

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

// creation makes what is missing of a machine.
type creation struct {
	*Driver
	machineScope
	want    spec.Spec
	request *driverv1alpha1.CreateMachineRequest
	// plan is what the spec asks for; nil before it was looked up.
	plan *plan
	// exists says that the project may hold something of the machine.
	exists bool
}

// ensure returns the machine's server, and makes it where there is none. An error says in which
// project there may be something of it.
func (c *creation) ensure(ctx context.Context) (made *driverv1alpha1.Machine, err error) {
	_, c.exists = c.attempts.location(c.Owner)
	if !c.exists {
		made, err = c.makeUnseen(ctx)
	}
	if made == nil && err == nil {
		made, err = c.resume(ctx)
	}
	switch {
	case err == nil:
		return made, nil
	case !c.exists:
		c.attempts.forget(c.Owner)
		return nil, err
	}
	return nil, sdk.AddDetails(err, sdk.WithPartialState("", locationOf(c.Session, !c.want.HasVolumes()).encode()))
}

// noteOutcome takes in what came of a request that makes something.
func (c *creation) noteOutcome(err error) { c.exists = c.exists || !session.IsRefused(err) }

// makeUnseen makes a machine without looking for what there may be of it: nearly always there is
// nothing. Two things make that safe. It looks for servers that have come or gone recently. And it
// asks for the first port at once: where there is one already, Neutron refuses a second. It returns
// nothing where one has to look closer.
func (c *creation) makeUnseen(ctx context.Context) (*driverv1alpha1.Machine, error) {
	if !slices.ContainsFunc(c.want.Ports, isOwn) {
		return nil, nil
	}
	if recent, err := c.reads.recent.Get(ctx, c.clusterScope(), recentKey(c.Owner)); len(recent) > 0 || err != nil {
		return nil, err
	}
	if err := c.lookUp(ctx); err != nil {
		return nil, err
	}
	found := c.nothingOwned(c.Owner)
	var err error
	if found.ports, err = c.makeFirstPort(ctx); len(found.ports) == 0 || err != nil {
		return nil, err
	}
	return c.makeMissing(ctx, found)
}

// resume returns the machine's server, or goes on with what there is of the machine.
func (c *creation) resume(ctx context.Context) (*driverv1alpha1.Machine, error) {
	found := c.nothingOwned(c.Owner)
	var err error
	if found.servers, err = c.reads.servers.Get(ctx, c.clusterScope(), c.UID); err != nil {
		return nil, err
	}
	if len(found.servers) > 0 {
		c.exists = true
		return c.returnExisting(ctx, found)
	}
	// Only now: a server that goes in between is in one of the two.
	recent, err := c.reads.recent.Get(ctx, c.clusterScope(), recentKey(c.Owner))
	if err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(recent, func(s server) bool { return s.Status == statusDeleted }); at >= 0 {
		return c.describeDeleted(recent[at]), nil
	}
	if err := c.lookUp(ctx); err != nil {
		return nil, err
	}
	if err := c.findPorts(ctx, c.machineScope, found); err != nil {
		return nil, err
	}
	c.exists = c.exists || !found.empty() || len(recent) > 0
	if len(found.servers) > 0 {
		return c.returnExisting(ctx, found)
	}
	if c.want.HasVolumes() {
		if found.volumes, err = c.reads.volumes.Get(ctx, c.clusterScope(), c.UID); err != nil {
			return nil, err
		}
	}
	if len(recent) > 0 {
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING, "The machine's server has just come.")
	}
	return c.makeMissing(ctx, found)
}

// lookUp finds what the spec names, once.
func (c *creation) lookUp(ctx context.Context) (err error) {
	if c.plan == nil {
		c.plan, err = planner{machineScope: c.machineScope, want: c.want, userData: c.request.GetUserData(), requestTags: c.request.GetTags()}.plan(ctx)
	}
	return err
}

// returnExisting returns the machine that exists, if it is the one that is wanted. Of two servers,
// which drivers that know nothing of each other can leave, the oldest stays.
func (c *creation) returnExisting(ctx context.Context, found *ownedResources) (*driverv1alpha1.Machine, error) {
	if err := found.nameTaken(c.Owner); err != nil {
		return nil, err
	}
	for _, younger := range found.servers[1:] {
		if err := servers.Delete(ctx, c.Compute, younger.ID).ExtractErr(); err != nil && !session.IsGone(err) {
			return nil, session.Explain(err)
		}
	}
	if found.servers[0].refusal() != 0 {
		return nil, c.withdraw(ctx, found.servers[0])
	}
	if err := c.checkConflict(ctx, found.servers[0]); err != nil {
		return nil, err
	}
	return found.machine(c.Session), nil
}

// withdraw deletes a server that never had a host, and returns as an error what Nova would have
// answered had it looked for one at once. The ports stay for the next request. The server gets
// another description first: it is none that the machine has had.
func (c *creation) withdraw(ctx context.Context, refused server) error {
	if err := servers.Update(ctx, c.Compute, refused.ID, withdrawn{}).Err; err != nil && !session.IsGone(err) {
		return session.Explain(err)
	}
	if err := done(servers.Delete(ctx, c.Compute, refused.ID).ExtractErr()); err != nil {
		return err
	}
	ports, err := c.reads.ports.Get(ctx, c.clusterScope(), c.PortName())
	if err != nil {
		return err
	}
	c.attempts.note(c.known(ports), c.epoch(), false)
	return session.ExplainFault(refused.refusal(), refused.Fault.words())
}

// withdrawn implements servers.UpdateOptsBuilder, which knows no description.
type withdrawn struct{}

// ToServerUpdateMap returns the body of the request.
func (withdrawn) ToServerUpdateMap() (map[string]any, error) {
	return map[string]any{"server": map[string]any{"description": "withdrawn by millwright: it never had a host"}}, nil
}

// describeDeleted describes a machine whose server somebody has deleted.
func (c *creation) describeDeleted(gone server) *driverv1alpha1.Machine {
	had := c.nothingOwned(c.Owner)
	had.servers = []server{gone}
	m := had.machine(c.Session)
	m.State, m.Operation = driverv1alpha1.MachineState_MACHINE_STATE_FAILED, nil
	m.Reason, m.Message = "ServerDeleted", "The server "+gone.ID+" of this machine was deleted, and a machine gets no second one."
	return m
}

// makeMissing makes the ports that are missing, the floating IP, the volumes and, after all that
// can fail, the server.
func (c *creation) makeMissing(ctx context.Context, found *ownedResources) (*driverv1alpha1.Machine, error) {
	if left := c.attempts.wait(c.known(found.ports), c.epoch()); left > 0 {
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING,
			"The machine's port is there, and a request for its server may still be on its way.", sdk.WithRetryAfter(left))
	}
	c.attempts.begin(c.Owner, locationOf(c.Session, !c.want.HasVolumes()))
	ports, err := c.makePorts(ctx, found.ports)
	if err != nil {
		return nil, err
	}
	if err := c.makeFloatingIP(ctx, ports); err != nil {
		return nil, err
	}
	volumes, err := disks{c}.make(ctx, found.volumes)
	if err != nil {
		return nil, err
	}
	body := c.plan.server
	body.BlockDevice = disks{c}.blockDevices(volumes)
	for _, id := range ports {
		body.networks = append(body.networks, servers.Network{Port: id})
	}
	c.attempts.note(ports, c.epoch(), true)
	made, err := servers.Create(ctx, c.Compute, withKeyPair(body, c.want.KeyPair), body.hints).Extract()
	c.noteOutcome(err)
	if err != nil {
		c.attempts.note(ports, c.epoch(), !session.IsRefused(err))
		return nil, c.explainServer(err)
	}
	now := c.nothingOwned(c.Owner)
	now.withoutVolumes = !c.want.HasVolumes()
	now.servers = []server{{
		ID: made.ID, Name: c.ServerName(), Status: statusBuild, Created: c.options.Clock(), Metadata: body.Metadata,
		Flavor: serverFlavor{Name: body.flavorName}, Zone: c.want.AvailabilityZone,
	}}
	return now.machine(c.Session), nil
}

// withKeyPair names the key pair, where there is one.
func withKeyPair(b body, name string) servers.CreateOptsBuilder {
	if name == "" {
		return b
	}
	return keypairs.CreateOptsExt{CreateOptsBuilder: b, KeyName: name}
}

// epoch is the leader's who asks.
func (c *creation) epoch() int64 { return c.request.GetMeta().GetLeaderEpoch() }

// known are the ports that there are before this call: its own that were found, and those that the
// spec brings.
func (c *creation) known(found []port) []string {
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

// makeFloatingIP makes the floating IP of the first port that the driver made. A port takes one: a
// second one is refused. One that was made for a port which is gone is taken along.
func (c *creation) makeFloatingIP(ctx context.Context, ports []string) error {
	if c.want.FloatingIPPool == "" {
		return nil
	}
	found, err := c.reads.floatingIPs.Get(ctx, c.clusterScope(), c.Description())
	if err != nil {
		return err
	}
	port := ports[slices.IndexFunc(c.want.Ports, isOwn)] // there is one, says spec
	if slices.ContainsFunc(found, func(f floatingIP) bool { return f.PortID == port }) {
		return nil
	}
	if free := slices.IndexFunc(found, func(f floatingIP) bool { return f.PortID == "" }); free >= 0 {
		return c.explain(floatingips.Update(ctx, c.Network, found[free].ID, floatingips.UpdateOpts{PortID: &port}).Err)
	}
	network, err := c.ExternalNetworkID(ctx, "floatingIpPool", c.want.FloatingIPPool)
	if err != nil {
		return err
	}
	_, err = floatingips.Create(ctx, c.Network, floatingips.CreateOpts{
		FloatingNetworkID: network, PortID: port, Description: c.Description(),
	}).Extract()
	if session.IsFloatingIPTaken(err) {
		return nil // by ours, which the list did not show yet, or by one that somebody else has given it
	}
	return c.explain(err)
}

// explain returns the contract's error. What the cloud did not find may have been looked up long
// ago, and is looked up again.
func (c *creation) explain(err error) error {
	if err == nil {
		return nil
	}
	explained := session.Explain(err)
	if status.Code(explained) == codes.FailedPrecondition {
		c.Forget()
	}
	return explained
}

// explainServer is explain for the request for the server. That another server has a port of the
// spec's is not over in a moment, as other conflicts are.
func (c *creation) explainServer(err error) error {
	explained := c.explain(err)
	for _, p := range c.want.Ports {
		if !isOwn(p) && session.IsPortInUse(err, p.ID) {
			return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE, explained.Error(),
				sdk.WithField(p.At+".id", "Another server has this port."))
		}
	}
	return explained
}

// checkConflict returns an error where the server differs from the spec in what cannot be changed
// on a server.
func (c *creation) checkConflict(ctx context.Context, have server) error {
	var fields []sdk.ErrorOption
	differs := func(field, value string) {
		fields = append(fields, sdk.WithField(field, "The server has "+value+", which cannot be changed."))
	}
	// What has left the catalog since can still be what the server was made from: then there is
	// nothing to compare with.
	flavor, err := c.Flavor(ctx, "flavor", c.want.Flavor)
	if err != nil && status.Code(err) != codes.FailedPrecondition {
		return err
	}
	if err == nil && have.Flavor.Name != "" && have.Flavor.Name != flavor.Name {
		differs("flavor", have.Flavor.Name)
	}
	// Another image can have the name by now.
	if _, err := uuid.Parse(c.want.Image); err == nil && have.Image.ID != "" && have.Image.ID != c.want.Image {
		differs("image", have.Image.ID)
	}
	// An administrator may name a host in it, "zone:host".
	if zone, _, _ := strings.Cut(c.want.AvailabilityZone, ":"); zone != "" && have.Zone != "" && have.Zone != zone {
		differs("availabilityZone", have.Zone)
	}
	if len(fields) == 0 {
		return nil
	}
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_CONFLICT, "A server of this machine exists and differs from the spec.", fields...)
}
