package driver

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

// creation makes what is missing of a machine.
type creation struct {
	machineScope
	driver  *Driver
	want    spec.Spec
	request *driverv1alpha1.CreateMachineRequest
	// epoch is the leader's who asks.
	epoch int64
	// exists says that the project may hold something of the machine.
	exists bool
}

// run returns the machine's server, and makes it where there is none. An error says in which
// project there may be something of it.
func (c *creation) run(ctx context.Context) (*driverv1alpha1.Machine, error) {
	inTime, cancel := answerInTime(ctx)
	defer cancel()
	made, err := c.lookAndMake(inTime)
	if err == nil || !c.exists {
		return made, err
	}
	if inTime.Err() != nil && ctx.Err() == nil {
		err = sdk.NewUnknownOutcome("The cloud has not answered in time.")
	}
	return nil, sdk.AddDetails(err, sdk.WithPartialState("", locationOf(c.cloud, !c.want.HasVolumes()).handedOver()))
}

// answerInTime returns a context that ends before a call does. A caller who no longer waits is not
// told where the machine is made.
func answerInTime(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, has := ctx.Deadline()
	if !has {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/10))
}

// lookAndMake asks OpenStack, in this order, what there is of the machine, what its spec names, and
// for what is missing. All that can fail comes before the server.
func (c *creation) lookAndMake(ctx context.Context) (*driverv1alpha1.Machine, error) {
	// GET ports by their marks, unless a list has just shown nothing; with one, servers,
	// floatingips and volumes, too.
	found, err := c.find(ctx)
	if err != nil {
		return nil, err
	}
	if c.exists = !found.empty(); len(found.servers) > 0 {
		return c.returnExisting(ctx, found)
	}
	// GET servers?changes-since: only now. A server whose port has gone meanwhile is in this list.
	recent, err := c.driver.reads.recent.Get(ctx, c.clusterScope(), recentKey(c.owner))
	if err != nil {
		return nil, err
	}
	if len(recent) > 0 {
		return c.returnRecent(ctx, recent)
	}
	// GET flavors, images, networks and more: each once in ten minutes.
	plan, err := planner{
		cloud: c.cloud, owner: c.owner, want: c.want, userData: c.request.GetUserData(), requestTags: c.request.GetTags(),
	}.plan(ctx)
	if err != nil {
		return nil, err
	}
	if left := c.driver.attempts.wait(c.knownPorts(found.ports), c.epoch); left > 0 {
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING,
			"The machine's port is there, and a request for its server may still be on its way.", sdk.WithRetryAfter(left))
	}
	// POST ports, PUT their tags, POST trunks.
	ports, err := c.makePorts(ctx, plan.ports, found.ports)
	if err != nil {
		return nil, err
	}
	// POST floatingips, or PUT one that is there.
	if err := c.makeFloatingIP(ctx, ports, found.floatingIPs); err != nil {
		return nil, err
	}
	// POST volumes.
	volumes, err := c.makeVolumes(ctx, plan.volumes, found.volumes)
	if err != nil {
		return nil, err
	}
	// POST servers.
	return c.makeServer(ctx, plan, ports, volumes)
}

// find returns what there is of the machine. Nearly always that is nothing: the last list of all
// machines says so, or one list of ports, since a server has the machine's port. A server whose
// port somebody has deleted by hand is not found.
func (c *creation) find(ctx context.Context) (*ownedResources, error) {
	found, hasOwnPort := c.driver.nothingOwned(c.owner), slices.ContainsFunc(c.want.Ports, isOwn)
	if hasOwnPort && c.driver.lastLists.showNothingOf(c.machineScope) {
		return found, nil
	}
	var err error
	if found.ports, err = c.driver.reads.ports.Get(ctx, c.clusterScope(), c.owner.PortName()); err != nil {
		return nil, err
	}
	if len(found.ports) > 0 || !hasOwnPort {
		if found.servers, err = c.driver.reads.servers.Get(ctx, c.clusterScope(), c.owner.UID); err != nil || len(found.servers) > 0 {
			return found, err
		}
	}
	return found, c.driver.findWithoutServer(ctx, c.machineScope, found)
}

// returnRecent returns the machine whose server has come or gone a moment ago, where no list of
// ports shows it.
func (c *creation) returnRecent(ctx context.Context, recent []server) (*driverv1alpha1.Machine, error) {
	if !slices.ContainsFunc(recent, func(s server) bool { return s.Status != statusDeleted }) {
		return c.describeDeleted(recent[0]), nil
	}
	c.exists = true
	found, err := c.driver.find(ctx, c.machineScope)
	if err != nil {
		return nil, err
	}
	if len(found.servers) == 0 {
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING, "The machine's server has just come.")
	}
	return c.returnExisting(ctx, found)
}

// makeServer asks for the server, on these ports and with these volumes by disk.
func (c *creation) makeServer(ctx context.Context, p *plan, ports []string, volumes map[string]string) (*driverv1alpha1.Machine, error) {
	body := p.server
	body.BlockDevice = blockDevices(c.want, p.image, volumes)
	for _, id := range ports {
		body.networks = append(body.networks, servers.Network{Port: id})
	}
	attempts := &c.driver.attempts
	attempts.note(ports, c.epoch, true)
	asked := c.driver.options.Clock()
	made, err := servers.Create(ctx, c.cloud.Compute, withKeyPair(body, c.want.KeyPair), body.hints).Extract()
	c.noteOutcome(err)
	if err != nil {
		attempts.note(ports, c.epoch, !session.IsRefused(err))
		return nil, c.explainServer(err)
	}
	now := c.driver.nothingOwned(c.owner)
	now.withoutVolumes = !c.want.HasVolumes()
	// A Nova that is slow to take a request is no faster to carry it out.
	now.poll = max(now.poll, c.driver.options.Clock().Sub(asked))
	now.servers = []server{{
		ID: made.ID, Name: c.owner.ServerName(), Status: statusBuild, Created: c.driver.options.Clock(), Metadata: body.Metadata,
		Flavor: serverFlavor{Name: body.flavorName}, Zone: c.want.AvailabilityZone,
	}}
	return now.machine(c.cloud), nil
}

// noteOutcome takes in what came of a request that makes something.
func (c *creation) noteOutcome(err error) { c.exists = c.exists || !session.IsRefused(err) }

// returnExisting returns the machine that exists, if it is the one that is wanted. Of two servers,
// which drivers that know nothing of each other can leave, the oldest stays.
func (c *creation) returnExisting(ctx context.Context, found *ownedResources) (*driverv1alpha1.Machine, error) {
	if err := found.nameTaken(c.owner); err != nil {
		return nil, err
	}
	for _, younger := range found.servers[1:] {
		if err := servers.Delete(ctx, c.cloud.Compute, younger.ID).ExtractErr(); err != nil && !session.IsGone(err) {
			return nil, session.Explain(err)
		}
	}
	if found.servers[0].refusal() != 0 {
		return nil, c.withdraw(ctx, found.servers[0])
	}
	if err := c.checkConflict(ctx, found.servers[0]); err != nil {
		return nil, err
	}
	return found.machine(c.cloud), nil
}

// withdraw deletes a server that never had a host, and returns as an error what Nova would have
// answered had it looked for one at once. The ports stay for the next request. The server gets
// another description first: it is none that the machine has had.
func (c *creation) withdraw(ctx context.Context, refused server) error {
	if err := servers.Update(ctx, c.cloud.Compute, refused.ID, withdrawn{}).Err; err != nil && !session.IsGone(err) {
		return session.Explain(err)
	}
	if err := done(servers.Delete(ctx, c.cloud.Compute, refused.ID).ExtractErr()); err != nil {
		return err
	}
	ports, err := c.driver.reads.ports.Get(ctx, c.clusterScope(), c.owner.PortName())
	if err != nil {
		return err
	}
	c.driver.attempts.note(c.knownPorts(ports), c.epoch, false)
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
	had := c.driver.nothingOwned(c.owner)
	had.servers = []server{gone}
	m := had.machine(c.cloud)
	m.State, m.Operation = driverv1alpha1.MachineState_MACHINE_STATE_FAILED, nil
	m.Reason, m.Message = "ServerDeleted", "The server "+gone.ID+" of this machine was deleted, and a machine gets no second one."
	return m
}

// explain returns the contract's error. What the cloud did not find may have been looked up long
// ago, and is looked up again.
func (c *creation) explain(err error) error {
	if err == nil {
		return nil
	}
	explained := session.Explain(err)
	if status.Code(explained) == codes.FailedPrecondition {
		c.cloud.Forget()
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
	flavor, err := c.cloud.Flavor(ctx, "flavor", c.want.Flavor)
	if err != nil && status.Code(err) != codes.FailedPrecondition {
		return err
	}
	if err == nil && have.Flavor.Name != "" && have.Flavor.Name != flavor.Name {
		differs("flavor", have.Flavor.Name)
	}
	// Another image can have the name by now.
	if _, err := uuid.Parse(string(c.want.Image)); err == nil && have.Image.ID != "" && have.Image.ID != string(c.want.Image) {
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
