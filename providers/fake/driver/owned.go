package driver

import (
	"encoding/json"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/tags"
	"github.com/millwright-dev/millwright/sdk"
)

// pollAfter is when it is worth asking again about a VM that is on its way.
const pollAfter = time.Second

// providerIDPrefix begins each VM's id: fake:///ZONE/ID.
const providerIDPrefix = "fake:///"

// ownedResources is all that the cloud holds for one machine.
type ownedResources struct {
	account string
	// vms should be at most one. The oldest is the machine.
	vms  []*fakecloudv1alpha1.VM
	nics []*fakecloudv1alpha1.NIC
}

func (h *ownedResources) empty() bool { return len(h.vms) == 0 && len(h.nics) == 0 }

// vm returns the machine's VM, nil when there is none.
func (h *ownedResources) vm() *fakecloudv1alpha1.VM {
	if len(h.vms) == 0 {
		return nil
	}
	return h.vms[0]
}

// marks returns the tags of any of the resources: all carry the same.
func (h *ownedResources) marks() map[string]string {
	if vm := h.vm(); vm != nil {
		return vm.GetTags()
	}
	if len(h.nics) > 0 {
		return h.nics[0].GetTags()
	}
	return nil
}

// nameTaken returns an error when the resources were made for another name.
func (h *ownedResources) nameTaken(scope machineScope) error {
	marks := h.marks()
	if h.empty() || marks[tags.Namespace] == scope.ref.GetNamespace() && marks[tags.Name] == scope.ref.GetName() {
		return nil
	}
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN,
		"The uid belongs to the machine "+marks[tags.Namespace]+"/"+marks[tags.Name]+".")
}

// conflict returns an error when the VM is not the one that is wanted.
func (h *ownedResources) conflict(scope machineScope, want spec) error {
	if err := h.nameTaken(scope); err != nil {
		return err
	}
	vm := h.vm()
	have := spec{Flavor: vm.GetFlavor(), Image: vm.GetImage(), Zone: vm.GetZone()}
	var fields []sdk.ErrorOption
	for _, field := range []struct{ path, have, want string }{
		{"flavor", have.Flavor, want.Flavor}, {"image", have.Image, want.Image}, {"zone", have.Zone, want.Zone},
	} {
		if field.have != field.want {
			fields = append(fields, sdk.WithField(field.path, "The vm has "+field.have+", which cannot be changed."))
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_CONFLICT,
		"A vm of this machine exists and differs from the spec.", fields...)
}

// state is what core is to keep for this driver.
func (h *ownedResources) state() []byte {
	state, _ := json.Marshal(lastKnownState{Account: h.account}) // a string cannot fail
	return state
}

// handedOver is that in an error.
func (h *ownedResources) handedOver() sdk.ErrorOption { return sdk.WithPartialState("", h.state()) }

// machine describes what is there in the contract's terms. It must not be empty.
func (h *ownedResources) machine() *driverv1alpha1.Machine {
	marks := h.marks()
	m := &driverv1alpha1.Machine{
		Ref: &driverv1alpha1.MachineRef{
			Namespace: marks[tags.Namespace], Name: marks[tags.Name], Uid: marks[tags.Machine],
		},
		ClusterUid:     marks[tags.Cluster],
		LastKnownState: h.state(),
	}
	if h.vm() == nil {
		h.describeNIC(m)
		return m
	}
	h.describeVM(m)
	return m
}

// describeNIC fills in what is known of a machine without a VM.
func (h *ownedResources) describeNIC(m *driverv1alpha1.Machine) {
	m.CreateTime = h.nics[0].GetCreateTime()
	for _, nic := range h.nics {
		if nic.GetVmId() != "" {
			// Its VM came while we looked.
			m.State = driverv1alpha1.MachineState_MACHINE_STATE_CREATING
			m.Operation = operation()
			return
		}
	}
	m.State = driverv1alpha1.MachineState_MACHINE_STATE_FAILED
	m.Reason, m.Message = "CreateIncomplete", "There is a nic, and no vm yet."
}

func (h *ownedResources) describeVM(m *driverv1alpha1.Machine) {
	vm := h.vm()
	m.ProviderId, m.CreateTime = vm.GetProviderId(), vm.GetCreateTime()
	m.Addresses = []*driverv1alpha1.MachineAddress{{Type: driverv1alpha1.AddressType_ADDRESS_TYPE_INTERNAL_IP, Address: vm.GetAddress()}}
	m.ProviderIdAliases = []string{regional(vm)}
	for _, other := range h.vms[1:] {
		m.DuplicateProviderIds = append(m.DuplicateProviderIds, other.GetProviderId())
	}
	switch vm.GetState() {
	case fakecloudv1alpha1.VMState_VM_STATE_BUILDING:
		m.State, m.Operation = driverv1alpha1.MachineState_MACHINE_STATE_CREATING, operation()
	case fakecloudv1alpha1.VMState_VM_STATE_RUNNING:
		m.State = driverv1alpha1.MachineState_MACHINE_STATE_RUNNING
	case fakecloudv1alpha1.VMState_VM_STATE_STOPPED:
		m.State = driverv1alpha1.MachineState_MACHINE_STATE_STOPPED
	case fakecloudv1alpha1.VMState_VM_STATE_DELETING:
		deleting(m)
	case fakecloudv1alpha1.VMState_VM_STATE_GONE:
		// The cloud remembers this uid: it had its one VM.
		m.State, m.Reason, m.Message = driverv1alpha1.MachineState_MACHINE_STATE_FAILED, "VMGone", "The vm of this machine was deleted."
	default:
		m.State, m.Reason, m.Message = driverv1alpha1.MachineState_MACHINE_STATE_FAILED, "VMFailed", vm.GetFault()
	}
}

// regional is the VM's id in the longer form, which names its region: fake://REGION/ZONE/ID. A Node
// may have it.
func regional(vm *fakecloudv1alpha1.VM) string {
	return "fake://" + vm.GetRegion() + "/" + strings.TrimPrefix(vm.GetProviderId(), providerIDPrefix)
}

// deleting turns m into a machine that is on its way out.
func deleting(m *driverv1alpha1.Machine) *driverv1alpha1.Machine {
	m.State, m.Reason, m.Message = driverv1alpha1.MachineState_MACHINE_STATE_DELETING, "", ""
	m.Operation = operation()
	return m
}

func operation() *driverv1alpha1.MachineOperation {
	return &driverv1alpha1.MachineOperation{PollAfter: durationpb.New(pollAfter)}
}
