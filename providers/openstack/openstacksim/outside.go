package openstacksim

import (
	"cmp"
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
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

// vm is the server as tests see it.
func (c *Cloud) vm(s *server) *backendv1alpha1.VM {
	return &backendv1alpha1.VM{
		Id: s.ID, ProviderId: c.options.providerID(c.regionOf(s), s.ID), Name: s.Name, ClusterUid: s.Owner.Cluster, MachineUid: s.Owner.Machine,
		State: s.hooked(), UserData: s.guestData(), Tags: s.othersTags(), Addresses: c.vmAddresses(s),
		CreateTime: timestamppb.New(s.Created), DeleteTime: testcloud.Stamp(s.Terminated),
		InstanceType: s.Flavor.Name, Region: c.regionOf(s), Zone: s.Zone, Revision: s.Revision,
	}
}

// regionOf is the region in which a server is, as far as its zone tells: all services are the same
// in all regions.
func (c *Cloud) regionOf(s *server) string {
	for _, region := range c.options.World.Regions {
		if strings.HasPrefix(s.Zone, region) {
			return region
		}
	}
	return c.options.World.Regions[0]
}

// guestData is the user data as a guest reads it.
func (s *server) guestData() []byte {
	raw, err := base64.StdEncoding.DecodeString(s.userData)
	if err != nil {
		return []byte(s.userData)
	}
	return raw
}

// othersTags are the metadata and tags that are not the driver's own marks.
func (s *server) othersTags() map[string]string {
	rest := map[string]string{}
	for _, tag := range s.Tags {
		if name, value, _ := strings.Cut(tag, "="); ownerOfTag(tag) == (owner{}) {
			rest[name] = value
		}
	}
	maps.Copy(rest, s.Metadata)
	for _, mark := range []string{ownership.Cluster, ownership.Machine, ownership.Namespace, ownership.Name} {
		delete(rest, mark)
	}
	return rest
}

// vmAddresses are the addresses of a server in Kubernetes' terms.
func (c *Cloud) vmAddresses(s *server) []*backendv1alpha1.VMAddress {
	var inner, outer []*backendv1alpha1.VMAddress
	byNetwork := c.addresses(s)
	for _, name := range slices.Sorted(maps.Keys(byNetwork)) {
		for _, view := range byNetwork[name] {
			address, _ := view["addr"].(string)
			if view["OS-EXT-IPS:type"] == "floating" {
				outer = append(outer, &backendv1alpha1.VMAddress{Type: "ExternalIP", Address: address})
				continue
			}
			inner = append(inner, &backendv1alpha1.VMAddress{Type: "InternalIP", Address: address})
		}
	}
	if len(inner) == 0 {
		return nil
	}
	return append(append([]*backendv1alpha1.VMAddress{{Type: "Hostname", Address: s.Name}}, inner...), outer...)
}

// ChangeVM implements the service.
func (h *hooks) ChangeVM(_ context.Context, r *backendv1alpha1.ChangeVMRequest) (*backendv1alpha1.ChangeVMResponse, error) {
	c := h.cloud
	c.front.Lock()
	defer c.front.Unlock()
	s := c.alive.byID[serverID(r.GetId())]
	if s == nil {
		return nil, status.Error(codes.NotFound, "no VM has this id")
	}
	switch r.GetChange() {
	case backendv1alpha1.VMChange_VM_CHANGE_DELETE:
		c.bury(s)
	case backendv1alpha1.VMChange_VM_CHANGE_STOP:
		s.VMState, s.TaskState, s.Power, s.Fault = vmStopped, "", powerOff, nil
	case backendv1alpha1.VMChange_VM_CHANGE_START:
		s.VMState, s.TaskState, s.Power, s.Fault = vmActive, "", powerRunning, nil
	case backendv1alpha1.VMChange_VM_CHANGE_FAIL:
		c.fail(s, r.GetMessage())
	case backendv1alpha1.VMChange_VM_CHANGE_PRINT:
		s.Printed += "\n" + r.GetMessage()
	default:
		return nil, status.Error(codes.InvalidArgument, "change: must be set")
	}
	s.Updated = testcloud.Now()
	c.touch(s)
	return &backendv1alpha1.ChangeVMResponse{Vm: c.vm(s)}, c.flush()
}

// CreateForeignVM implements the service. The server has a port of its own, and belongs to the
// first project. With the uids of a machine it is as a driver would have made it; the tags become
// metadata.
func (h *hooks) CreateForeignVM(_ context.Context, r *backendv1alpha1.CreateForeignVMRequest) (*backendv1alpha1.CreateForeignVMResponse, error) {
	c, wanted := h.cloud, r.GetVm()
	c.front.Lock()
	defer c.front.Unlock()
	project := c.projectID(c.options.World.Projects[0].Name)
	flavor, image := c.flavors.ordered[0], c.images.ordered[0]
	s := &server{
		record: c.newRecord(project, wanted.GetName()), UserID: c.userOf(project), Metadata: cloneMap(wanted.GetTags()), Described: true,
		Flavor: serverFlavor{ID: flavor.ID, Name: flavor.Name, VCPUs: flavor.VCPUs, RAM: flavor.RAM, Disk: flavor.Disk, Specs: flavor.Specs},
		Image:  image.ID, Zone: c.options.World.Zones[0],
	}
	s.Description = s.Name
	p := &port{record: c.newRecord(project, wanted.GetName()), Network: c.firstNetwork(project), Secure: true, Revised: 1}
	mark(s, p, wanted)
	if wanted.GetCreateTime() != nil {
		s.Created, p.Created = wanted.GetCreateTime().AsTime(), wanted.GetCreateTime().AsTime()
	}
	if err := c.address(p, nil); err != nil {
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	}
	if p.MAC == "" || c.usesMAC(p.Network, p.MAC) {
		p.MAC = c.freeMAC(p.Network)
	}
	p.Groups = []string{c.defaultGroup(project).ID}
	c.putPort(p)
	s.Interfaces = []networkInterface{{Port: p.ID}}
	s.VMState, s.Power, s.Launched = vmActive, powerRunning, s.Created
	c.putServer(s)
	_ = c.bind(s) // the port is new, and there
	c.plug(s)
	c.touch(s)
	return &backendv1alpha1.CreateForeignVMResponse{Vm: c.vm(s)}, c.flush()
}

// mark writes whose they are on a server and its port, as a driver would.
func mark(s *server, p *port, wanted *backendv1alpha1.VM) {
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
	s.Owner, p.Owner = ownerOfServer(s), ownerOfText(p.Name, p.Description)
}

func (c *Cloud) userOf(project string) string {
	for _, u := range c.users {
		if u.ProjectID == project {
			return u.ID
		}
	}
	return ""
}

// firstNetwork is a network of a project.
func (c *Cloud) firstNetwork(project string) string {
	for _, n := range c.networks.ordered {
		if n.Project == project && !n.External {
			return n.ID
		}
	}
	return ""
}
