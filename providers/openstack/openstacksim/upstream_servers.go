package openstacksim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/compute"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// realServer is what the real Nova shows an administrator of a server.
type realServer struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Status      string            `json:"status"`
	VMState     string            `json:"OS-EXT-STS:vm_state"`
	TaskState   string            `json:"OS-EXT-STS:task_state"`
	Metadata    map[string]string `json:"metadata"`
	Tags        []string          `json:"tags"`
	UserData    string            `json:"OS-EXT-SRV-ATTR:user_data"`
	Zone        string            `json:"OS-EXT-AZ:availability_zone"`
	Created     time.Time         `json:"created"`
	Flavor      struct {
		Name string `json:"original_name"`
	} `json:"flavor"`
	// LaunchedAt is empty of a server that never ran.
	LaunchedAt string `json:"OS-SRV-USG:launched_at"`
	Addresses  map[string][]struct {
		Address string `json:"addr"`
		Kind    string `json:"OS-EXT-IPS:type"`
	} `json:"addresses"`
	Volumes []struct {
		ID string `json:"id"`
	} `json:"os-extended-volumes:volumes_attached"`
}

// vm is the server as tests see it, in a region.
func (r *realServer) vm(region string) *backendv1alpha1.VM {
	s := &compute.Server{Launched: r.launched(), VMState: r.VMState, TaskState: r.TaskState, Metadata: r.Metadata, Tags: r.Tags, UserData: r.UserData}
	if r.Status == "DELETED" {
		s.VMState, s.TaskState, s.UserData = compute.VMDeleted, "", ""
	}
	whose := r.owner()
	return &backendv1alpha1.VM{
		Id: r.ID, ProviderId: Options{}.providerID("", r.ID), Name: r.Name, ClusterUid: whose.Cluster, MachineUid: whose.Machine,
		State: s.HookState(), UserData: s.GuestData(), Tags: s.OthersTags(), Addresses: r.vmAddresses(),
		CreateTime: timestamppb.New(r.Created), InstanceType: r.Flavor.Name, Region: region, Zone: r.Zone,
	}
}

// launched is when the server first ran, or a time after it; zero before.
func (r *realServer) launched() time.Time {
	if r.LaunchedAt == "" {
		return time.Time{}
	}
	return r.Created
}

// owner is whose the server is. Of one that is gone, only its description tells.
func (r *realServer) owner() state.Owner {
	if o := state.OwnerOfMetadata(r.Metadata); o != (state.Owner{}) {
		return o
	}
	return state.OwnerOfDescription(r.Description)
}

func (r *realServer) vmAddresses() []*backendv1alpha1.VMAddress {
	var inner, outer []*backendv1alpha1.VMAddress
	for _, network := range slices.Sorted(maps.Keys(r.Addresses)) {
		for _, a := range r.Addresses[network] {
			if a.Kind == "floating" {
				outer = append(outer, &backendv1alpha1.VMAddress{Type: "ExternalIP", Address: a.Address})
				continue
			}
			inner = append(inner, &backendv1alpha1.VMAddress{Type: "InternalIP", Address: a.Address})
		}
	}
	if len(inner) == 0 {
		return nil
	}
	return slices.Concat([]*backendv1alpha1.VMAddress{{Type: "Hostname", Address: r.Name}}, inner, outer)
}

// inherit keeps what is known of a VM and no longer told.
func inherit(vm, before *backendv1alpha1.VM) {
	vm.ClusterUid = cmp.Or(vm.GetClusterUid(), before.GetClusterUid())
	vm.MachineUid = cmp.Or(vm.GetMachineUid(), before.GetMachineUid())
	if vm.GetState() == backendv1alpha1.VMState_VM_STATE_GONE {
		vm.DeleteTime = cmp.Or(before.GetDeleteTime(), timestamppb.Now())
	}
}
