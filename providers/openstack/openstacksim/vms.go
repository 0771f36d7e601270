package openstacksim

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/compute"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/network"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// providerScheme begins what Node.spec.providerID is.
const providerScheme = "openstack://"

// providerID is what the cloud controller manager of a region writes as Node.spec.providerID.
func (o Options) providerID(region, id string) string {
	if !slices.Contains(o.RegionalIDs, region) {
		region = ""
	}
	return providerScheme + region + "/" + id
}

// serverID is the id in a providerID of either form, and in itself.
func serverID(providerID string) string { return providerID[strings.LastIndex(providerID, "/")+1:] }

// vm is the server as tests see it. One that is gone and never ran is only the machine's that its
// description names: the driver takes another one back, for which there was no host.
func (h *hooks) vm(s *compute.Server) *backendv1alpha1.VM {
	owner := s.Owner
	if s.Gone() && s.Launched.IsZero() {
		owner = state.OwnerOfDescription(s.Description)
	}
	return &backendv1alpha1.VM{
		Id: s.ID, ProviderId: h.cloud.options.providerID(h.regionOf(s), s.ID), Name: s.Name, ClusterUid: owner.Cluster, MachineUid: owner.Machine,
		State: s.HookState(), UserData: s.GuestData(), Tags: s.OthersTags(), Addresses: h.cloud.nova.Addresses(s),
		CreateTime: timestamppb.New(s.Created), DeleteTime: testcloud.Stamp(s.Terminated),
		InstanceType: s.Flavor.Name, Region: h.regionOf(s), Zone: s.Zone, Revision: s.Revision,
	}
}

// regionOf is the region in which a server is, as far as its zone tells: all services are the same
// in all regions.
func (h *hooks) regionOf(s *compute.Server) string {
	for _, region := range h.cloud.options.World.Regions {
		if strings.HasPrefix(s.Zone, region) {
			return region
		}
	}
	return h.cloud.options.World.Regions[0]
}

// ChangeVM implements the service.
func (h *hooks) ChangeVM(_ context.Context, r *backendv1alpha1.ChangeVMRequest) (*backendv1alpha1.ChangeVMResponse, error) {
	c := h.cloud
	c.front.Lock()
	defer c.front.Unlock()
	s, err := c.nova.Change(serverID(r.GetId()), r.GetChange(), r.GetMessage())
	if err != nil {
		return nil, err
	}
	return &backendv1alpha1.ChangeVMResponse{Vm: h.vm(s)}, c.store.Journal.Flush()
}

// CreateForeignVM implements the service. The server has a port of its own, and belongs to the
// first project. With the uids of a machine it is as a driver would have made it; the tags become
// metadata.
func (h *hooks) CreateForeignVM(_ context.Context, r *backendv1alpha1.CreateForeignVMRequest) (*backendv1alpha1.CreateForeignVMResponse, error) {
	c, wanted := h.cloud, r.GetVm()
	c.front.Lock()
	defer c.front.Unlock()
	project := c.keystone.ProjectID(c.options.World.Projects[0].Name)
	s := &compute.Server{
		Record: c.store.NewRecord(project, wanted.GetName()), UserID: c.keystone.UserOf(project), Metadata: api.Clone(wanted.GetTags()), Described: true,
		Flavor: compute.FlavorOf(c.nova.Flavors.Ordered[0]), Image: c.glance.Images.Ordered[0].ID, Zone: c.options.World.Zones[0],
	}
	s.Description = s.Name
	p := &network.Port{Record: c.store.NewRecord(project, wanted.GetName()), Network: c.neutron.FirstNetwork(project), Secure: true, Revised: 1}
	mark(s, p, wanted)
	if wanted.GetCreateTime() != nil {
		s.Created, p.Created = wanted.GetCreateTime().AsTime(), wanted.GetCreateTime().AsTime()
	}
	if err := c.neutron.Assign(p, nil); err != nil {
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	}
	if p.MAC == "" || c.neutron.UsesMAC(p.Network, p.MAC) {
		p.MAC = c.neutron.FreeMAC(p.Network)
	}
	p.Groups = []string{c.neutron.DefaultGroup(project).ID}
	c.neutron.AddPort(p)
	s.Interfaces = []compute.NetworkInterface{{Port: p.ID}}
	c.nova.AddRunning(s)
	return &backendv1alpha1.CreateForeignVMResponse{Vm: h.vm(s)}, c.store.Journal.Flush()
}

// mark writes whose they are on a server and its port, as a driver would.
func mark(s *compute.Server, p *network.Port, wanted *backendv1alpha1.VM) {
	o := ownership.Owner{
		Cluster: wanted.GetClusterUid(), UID: wanted.GetMachineUid(),
		Namespace: cmp.Or(s.Metadata[ownership.Namespace], "default"), Name: cmp.Or(s.Metadata[ownership.Name], wanted.GetName()),
	}
	if o.Cluster != "" {
		s.Metadata[ownership.Cluster] = o.Cluster
		s.Tags = append(s.Tags, ownership.ClusterTag(o.Cluster))
		p.Description = ownership.ClusterDescription(o.Cluster)
	}
	if o.UID != "" {
		s.Metadata[ownership.Machine], s.Metadata[ownership.Namespace], s.Metadata[ownership.Name] = o.UID, o.Namespace, o.Name
		s.Tags = append(s.Tags, ownership.MachineTag(o.UID))
		p.Name = o.PortName()
	}
	if o.Cluster != "" && o.UID != "" {
		s.Description, p.MAC = o.Description(), o.MAC(0)
	}
	s.Owner, p.Owner = compute.OwnerOf(s), state.OwnerOfText(p.Name, p.Description)
}
