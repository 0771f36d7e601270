package driver

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/sdk"
)

// ownedResources is all that is known to exist for one machine.
type ownedResources struct {
	// Owner is the machine; where nobody has named it, as in a list, what the resources say.
	ownership.Owner
	// poll is when it is worth asking again about what is on its way.
	poll time.Duration
	// regional says which form of the servers' ids comes first: Options.Regional.
	regional bool
	// servers should be at most one. The oldest is the machine.
	servers     []server
	ports       []port
	floatingIPs []floatingIP
	volumes     []volume
	// withoutVolumes says that none was made for the machine.
	withoutVolumes bool
}

func (h *ownedResources) empty() bool {
	return len(h.servers) == 0 && len(h.ports) == 0 && len(h.floatingIPs) == 0 && len(h.volumes) == 0
}

// marked is whose the resources say they are.
func (h *ownedResources) marked() ownership.Owner {
	if len(h.servers) > 0 {
		if owner, marked := h.servers[0].owner(); marked {
			return owner
		}
	}
	return h.Owner
}

// nameTaken returns an error when the server was made for another name.
func (h *ownedResources) nameTaken(wanted ownership.Owner) error {
	if owner := h.marked(); owner != wanted {
		return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN, "The uid belongs to the machine "+owner.String()+".")
	}
	return nil
}

// machine describes what is there in the contract's terms. It must not be empty.
func (h *ownedResources) machine(in *session.Session) *driverv1alpha1.Machine {
	owner := h.marked()
	m := &driverv1alpha1.Machine{
		Ref:            &driverv1alpha1.MachineRef{Namespace: owner.Namespace, Name: owner.Name, Uid: owner.UID},
		ClusterUid:     owner.Cluster,
		LastKnownState: locationOf(in, h.hasNoVolumes()).encode(),
	}
	if len(h.servers) == 0 {
		h.describeLeftovers(m)
		return m
	}
	h.describeServer(m, in.Region)
	return m
}

// hasNoVolumes says whether it is certain that no volume was made for the machine: a server that
// has a host has all of them.
func (h *ownedResources) hasNoVolumes() bool {
	return h.withoutVolumes || len(h.servers) > 0 && h.servers[0].HostID != "" && len(h.servers[0].Volumes) == 0
}

// describeLeftovers fills in what is known of a machine without a server.
func (h *ownedResources) describeLeftovers(m *driverv1alpha1.Machine) {
	var times []time.Time
	for _, p := range h.ports {
		times = append(times, p.Created)
	}
	for _, f := range h.floatingIPs {
		times = append(times, f.Created)
	}
	for _, v := range h.volumes {
		times = append(times, time.Time(v.Created))
	}
	m.CreateTime = timestamppb.New(slices.MinFunc(times, time.Time.Compare))
	m.State = driverv1alpha1.MachineState_MACHINE_STATE_FAILED
	m.Reason, m.Message = "ServerMissing",
		"There is a port, a floating IP or a volume, and no server: its creation was not finished, or somebody has deleted it."
}

func (h *ownedResources) describeServer(m *driverv1alpha1.Machine, region string) {
	s := h.servers[0]
	if s.isVM() {
		ids := providerIDs(region, s.ID, h.regional)
		m.ProviderId, m.ProviderIdAliases = ids[0], ids[1:]
	}
	m.State, m.Reason, m.Message = s.state()
	if isBusy(m.GetState()) {
		m.Operation = h.operation()
	}
	m.Addresses = s.addresses()
	m.CreateTime = timestamppb.New(s.Created)
	for _, other := range h.servers[1:] {
		m.DuplicateProviderIds = append(m.DuplicateProviderIds, providerIDs(region, other.ID, h.regional)[0])
	}
}

// deleting describes what is still there of a machine that is being deleted.
func (h *ownedResources) deleting(in *session.Session) *driverv1alpha1.Machine {
	m := h.machine(in)
	m.State, m.Operation = driverv1alpha1.MachineState_MACHINE_STATE_DELETING, h.operation()
	m.Reason, m.Message = "", ""
	return m
}

func (h *ownedResources) operation() *driverv1alpha1.MachineOperation {
	return &driverv1alpha1.MachineOperation{PollAfter: durationpb.New(h.poll)}
}

// isBusy says whether Nova is doing something with a server in a state.
func isBusy(state driverv1alpha1.MachineState) bool {
	switch state {
	case driverv1alpha1.MachineState_MACHINE_STATE_CREATING, driverv1alpha1.MachineState_MACHINE_STATE_DELETING,
		driverv1alpha1.MachineState_MACHINE_STATE_UPDATING, driverv1alpha1.MachineState_MACHINE_STATE_STOPPING:
		return true
	}
	return false
}
