package openstacksim

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	volumequotas "github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/quotas"
	neutrontrunks "github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/trunks"
	neutronports "github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/compute"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/network"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// upstreamHooks serves the hooks of a cloud that stands before real services: what they hold is an
// administrator's to see and to change.
type upstreamHooks struct {
	hooks
	*mirror
}

// projectOf is the project of a session.
func projectOf(session *gophercloud.ProviderClient) (string, error) {
	login, is := session.GetAuthResult().(tokens.CreateResult)
	if !is {
		return "", fmt.Errorf("find the project: %T is no answer of Keystone's", session.GetAuthResult())
	}
	project, err := login.ExtractProject()
	if err != nil {
		return "", fmt.Errorf("find the project: %w", err)
	}
	return project.ID, nil
}

// ListVMs implements the service.
func (h *upstreamHooks) ListVMs(ctx context.Context, r *backendv1alpha1.ListVMsRequest) (*backendv1alpha1.ListVMsResponse, error) {
	if r.GetWait().AsDuration() == 0 {
		if err := h.look(ctx); err != nil {
			return nil, unavailable(err)
		}
	}
	answer := &backendv1alpha1.ListVMsResponse{}
	h.cloud.front.Poll(ctx, r.GetWait().AsDuration(), func() bool {
		answer.Vms, answer.More = h.seen(r)
		return len(answer.GetVms()) > 0
	})
	return answer, ctx.Err()
}

func (h *upstreamHooks) seen(r *backendv1alpha1.ListVMsRequest) (found []*backendv1alpha1.VM, more bool) {
	return testcloud.Page(h.mirror.history.After(r.GetAfterRevision()), r.GetMaxResults(), func(ch testcloud.Change) (*backendv1alpha1.VM, int) {
		vm := h.mirror.vms[ch.Key]
		if vm.GetRevision() != ch.Revision || !testcloud.Matches(r.GetClusterUid(), vm.GetClusterUid()) {
			return nil, 0
		}
		return proto.CloneOf(vm), len(vm.GetUserData())
	})
}

// ListResources implements the service.
func (h *upstreamHooks) ListResources(ctx context.Context, r *backendv1alpha1.ListResourcesRequest) (*backendv1alpha1.ListResourcesResponse, error) {
	all, err := h.held(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	return &backendv1alpha1.ListResourcesResponse{Resources: slices.DeleteFunc(all, func(one *backendv1alpha1.Resource) bool {
		return !testcloud.Matches(r.GetClusterUid(), one.GetClusterUid()) || !testcloud.Matches(r.GetMachineUid(), one.GetMachineUid())
	})}, nil
}

// held is everything that the project has, but for what its networks are made of.
func (h *upstreamHooks) held(ctx context.Context) ([]*backendv1alpha1.Resource, error) {
	found, err := h.list(ctx, servers.ListOpts{})
	if err != nil {
		return nil, err
	}
	all, byServer := []*backendv1alpha1.Resource{}, map[string]state.Owner{}
	for _, s := range found {
		byServer[s.ID] = s.owner()
		all = append(all, told(state.KindVM, s.ID, s.Name, s.owner(), s.Created))
	}
	for _, list := range []func(context.Context, map[string]state.Owner) ([]*backendv1alpha1.Resource, error){
		h.heldPorts, h.heldFloatingIPs, h.heldTrunks, h.heldVolumes,
	} {
		more, err := list(ctx, byServer)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

func (h *upstreamHooks) heldPorts(ctx context.Context, byServer map[string]state.Owner) (all []*backendv1alpha1.Resource, err error) {
	pages, err := neutronports.List(h.network, neutronports.ListOpts{ProjectID: h.project}).AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("list ports: %w", err)
	}
	found, err := neutronports.ExtractPorts(pages)
	for _, p := range found {
		whose := state.OwnerOfText(p.Name, p.Description)
		if whose == (state.Owner{}) {
			whose = byServer[p.DeviceID]
		}
		if !strings.HasPrefix(p.DeviceOwner, "network:") {
			all = append(all, told(state.KindPort, p.ID, p.Name, whose, p.CreatedAt))
		}
	}
	return all, err
}

func (h *upstreamHooks) heldFloatingIPs(ctx context.Context, _ map[string]state.Owner) (all []*backendv1alpha1.Resource, err error) {
	pages, err := floatingips.List(h.network, floatingips.ListOpts{ProjectID: h.project}).AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("list floating IPs: %w", err)
	}
	found, err := floatingips.ExtractFloatingIPs(pages)
	for _, f := range found {
		all = append(all, told(state.KindFloatingIP, f.ID, f.FloatingIP, state.OwnerOfDescription(f.Description), f.CreatedAt))
	}
	return all, err
}

func (h *upstreamHooks) heldTrunks(ctx context.Context, _ map[string]state.Owner) (all []*backendv1alpha1.Resource, err error) {
	pages, err := neutrontrunks.List(h.network, neutrontrunks.ListOpts{ProjectID: h.project}).AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("list trunks: %w", err)
	}
	found, err := neutrontrunks.ExtractTrunks(pages)
	for _, k := range found {
		all = append(all, told(state.KindTrunk, k.ID, k.Name, state.OwnerOfText(k.Name, k.Description), k.CreatedAt))
	}
	return all, err
}

func (h *upstreamHooks) heldVolumes(ctx context.Context, byServer map[string]state.Owner) (all []*backendv1alpha1.Resource, err error) {
	pages, err := volumes.List(h.volumes, volumes.ListOpts{AllTenants: true, TenantID: h.project}).AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	found, err := volumes.ExtractVolumes(pages)
	for _, v := range found {
		whose := state.OwnerOfMetadata(v.Metadata)
		for _, a := range v.Attachments {
			whose = cmp.Or(whose, byServer[a.ServerID])
		}
		all = append(all, told(state.KindVolume, v.ID, v.Name, whose, v.CreatedAt))
	}
	return all, err
}

func told(kind, id, name string, o state.Owner, created time.Time) *backendv1alpha1.Resource {
	return &backendv1alpha1.Resource{
		Kind: kind, Id: id, Name: name, ClusterUid: o.Cluster, MachineUid: o.Machine, CreateTime: timestamppb.New(created),
	}
}

// GetTotals implements the service. VMs that came and went before this cloud was there are not
// counted.
func (h *upstreamHooks) GetTotals(ctx context.Context, r *backendv1alpha1.GetTotalsRequest) (*backendv1alpha1.GetTotalsResponse, error) {
	if err := h.look(ctx); err != nil {
		return nil, unavailable(err)
	}
	held, err := h.held(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	h.cloud.front.Lock()
	defer h.cloud.front.Unlock()
	cluster := r.GetClusterUid()
	answer := &backendv1alpha1.GetTotalsResponse{Calls: h.cloud.front.Ledger.Counts(cluster), VmsPeak: h.mirror.peak[cluster]}
	for _, vm := range h.mirror.vms {
		if !testcloud.Matches(cluster, vm.GetClusterUid()) {
			continue
		}
		answer.VmsCreated++
		if vm.GetState() == backendv1alpha1.VMState_VM_STATE_GONE {
			answer.VmsDeleted++
		}
	}
	for _, one := range held {
		if testcloud.Matches(cluster, one.GetClusterUid()) {
			answer.ResourcesLeft++
		}
	}
	return answer, nil
}

// SetQuota implements the service, for all kinds but trunks.
func (h *upstreamHooks) SetQuota(ctx context.Context, r *backendv1alpha1.SetQuotaRequest) (*backendv1alpha1.SetQuotaResponse, error) {
	for kind, limit := range r.GetLimits() {
		n := max(int(limit), -1)
		var err error
		switch kind {
		case state.KindVM:
			err = quotasets.Update(ctx, h.compute, h.project, quotasets.UpdateOpts{Instances: &n, Force: true}).Err
		case state.KindPort:
			err = quotas.Update(ctx, h.network, h.project, quotas.UpdateOpts{Port: &n}).Err
		case state.KindFloatingIP:
			err = quotas.Update(ctx, h.network, h.project, quotas.UpdateOpts{FloatingIP: &n}).Err
		case state.KindVolume:
			err = volumequotas.Update(ctx, h.volumes, h.project, volumequotas.UpdateOpts{Volumes: &n}).Err
		default:
			err = status.Errorf(codes.InvalidArgument, "limits: the quota of %q cannot be set", kind)
		}
		if err != nil {
			return nil, unavailable(err)
		}
	}
	return &backendv1alpha1.SetQuotaResponse{}, nil
}

// ChangeVM implements the service, and returns when the change is to be seen, or the VM has gone
// for another reason. A state in which Nova does not take the change is FAILED_PRECONDITION. Of a
// failure, Nova tells no words.
func (h *upstreamHooks) ChangeVM(ctx context.Context, r *backendv1alpha1.ChangeVMRequest) (*backendv1alpha1.ChangeVMResponse, error) {
	id := serverID(r.GetId())
	var err error
	var wanted backendv1alpha1.VMState
	switch r.GetChange() {
	case backendv1alpha1.VMChange_VM_CHANGE_DELETE:
		wanted, err = backendv1alpha1.VMState_VM_STATE_GONE, servers.Delete(ctx, h.compute, id).ExtractErr()
	case backendv1alpha1.VMChange_VM_CHANGE_STOP:
		wanted, err = backendv1alpha1.VMState_VM_STATE_STOPPED, servers.Stop(ctx, h.compute, id).ExtractErr()
	case backendv1alpha1.VMChange_VM_CHANGE_START:
		wanted, err = backendv1alpha1.VMState_VM_STATE_RUNNING, h.start(ctx, id)
	case backendv1alpha1.VMChange_VM_CHANGE_FAIL:
		// Only those that run are changed.
		wanted, err = backendv1alpha1.VMState_VM_STATE_STOPPED, servers.ResetState(ctx, h.compute, id, servers.StateError).ExtractErr()
	default:
		return nil, status.Error(codes.InvalidArgument, "change: must be set")
	}
	switch {
	case gophercloud.ResponseCodeIs(err, http.StatusNotFound):
		return nil, status.Error(codes.NotFound, "no VM has this id")
	case gophercloud.ResponseCodeIs(err, http.StatusConflict):
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	if err != nil {
		return nil, unavailable(err)
	}
	vm, err := h.await(ctx, id, wanted)
	return &backendv1alpha1.ChangeVMResponse{Vm: vm}, err
}

// start has a server run that was stopped, or put in ERROR.
func (h *upstreamHooks) start(ctx context.Context, id string) error {
	now, err := servers.Get(ctx, h.compute, id).Extract()
	if err == nil && now.Status == "ERROR" {
		return servers.ResetState(ctx, h.compute, id, servers.StateActive).ExtractErr()
	}
	return servers.Start(ctx, h.compute, id).ExtractErr()
}

// changeLimit bounds how long a change takes until it is to be seen.
const changeLimit = time.Minute

// await returns the VM once it is in that state, or gone.
func (h *upstreamHooks) await(ctx context.Context, id string, wanted backendv1alpha1.VMState) (vm *backendv1alpha1.VM, err error) {
	ctx, cancel := context.WithTimeout(ctx, changeLimit)
	defer cancel()
	err = gophercloud.WaitFor(ctx, func(ctx context.Context) (bool, error) {
		if err := h.look(ctx); err != nil {
			return false, err
		}
		h.cloud.front.Lock()
		defer h.cloud.front.Unlock()
		number, known := h.numbers[id]
		if known {
			vm = proto.CloneOf(h.mirror.vms[number])
		}
		return vm.GetState() == wanted || vm.GetState() == backendv1alpha1.VMState_VM_STATE_GONE, nil
	})
	if err != nil {
		return nil, unavailable(fmt.Errorf("wait for VM %s to be %s: %w", id, wanted, err))
	}
	return vm, nil
}

// CreateForeignVM implements the service, as far as Nova lets anybody choose: the time of the
// creation is now.
func (h *upstreamHooks) CreateForeignVM(ctx context.Context, r *backendv1alpha1.CreateForeignVMRequest) (*backendv1alpha1.CreateForeignVMResponse, error) {
	wanted := r.GetVm()
	named := state.Record{Name: wanted.GetName()}
	s, p := &compute.Server{Record: named, Metadata: api.Clone(wanted.GetTags())}, &network.Port{Record: named}
	s.Description = s.Name
	mark(s, p, wanted)
	networkID, flavor, image, err := h.ordinary(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	port, err := neutronports.Create(ctx, h.member.network, neutronports.CreateOpts{NetworkID: networkID, Name: p.Name, Description: p.Description, MACAddress: p.MAC}).Extract()
	if err != nil {
		return nil, unavailable(fmt.Errorf("make a port: %w", err))
	}
	made, err := servers.Create(ctx, h.member.compute, described{servers.CreateOpts{
		Name: s.Name, FlavorRef: flavor, ImageRef: image, Metadata: s.Metadata, Tags: s.Tags, Networks: []servers.Network{{Port: port.ID}},
	}, s.Description}, nil).Extract()
	if err != nil {
		return nil, unavailable(fmt.Errorf("make a server: %w", err))
	}
	vm, err := h.await(ctx, made.ID, backendv1alpha1.VMState_VM_STATE_RUNNING)
	return &backendv1alpha1.CreateForeignVMResponse{Vm: vm}, err
}

// ordinary are a network of the project, the flavor of the fewest CPUs and an image: what a machine
// of no interest is made from.
func (h *upstreamHooks) ordinary(ctx context.Context) (network, flavor, image string, err error) {
	var listed struct {
		Networks, Flavors, Images []struct{ ID string }
	}
	for _, list := range []struct {
		of   *gophercloud.ServiceClient
		path string
	}{
		{h.member.network, "networks?limit=1&project_id=" + h.project}, {h.member.compute, "flavors?limit=1&sort_key=vcpus"}, {h.member.image, "images?limit=1"},
	} {
		if _, err := list.of.Get(ctx, list.of.ServiceURL(list.path), &listed, nil); err != nil { //nolint:bodyclose // gophercloud closes it
			return "", "", "", fmt.Errorf("look for what a server is made from: %w", err)
		}
	}
	if len(listed.Networks) == 0 || len(listed.Flavors) == 0 || len(listed.Images) == 0 {
		return "", "", "", fmt.Errorf("there are no networks, no flavors or no images to make a server from: %v", listed)
	}
	return listed.Networks[0].ID, listed.Flavors[0].ID, listed.Images[0].ID, nil
}

// described is a server with a description, which gophercloud's options do not have.
type described struct {
	servers.CreateOpts
	description string
}

// ToServerCreateMap implements servers.CreateOptsBuilder.
func (d described) ToServerCreateMap() (map[string]any, error) {
	body, err := d.CreateOpts.ToServerCreateMap()
	if server, is := body["server"].(map[string]any); is && d.description != "" {
		server["description"] = d.description
	}
	return body, err
}

// unavailable is what a hook says of an error of the services.
func unavailable(err error) error {
	if _, is := status.FromError(err); is {
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}
