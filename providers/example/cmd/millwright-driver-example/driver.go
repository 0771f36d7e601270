package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millwright-dev/millwright/sdk"
)

const name = "example" // the cloudProvider that selects this driver

// spec is cloudProviderSpec. The schema that users are checked against is made from it.
type spec struct {
	Flavor string `json:"flavor"`
	Image  string `json:"image"`
	// Token may come from a Secret, so it is writeOnly, and omitempty lets it be absent.
	Token string `json:"token,omitempty" jsonschema:"writeOnly=true"`
}

// account is what status, delete and list need of the spec.
type account struct {
	Token string `json:"token"`
}

// driver has nothing but the address of the cloud. What it has to know of a machine stands on what
// it has made, as tags, so that another driver finds it.
type driver struct {
	endpoint string
	http     *http.Client
}

var (
	_ sdk.Lister     = (*driver)(nil)
	_ sdk.SpecSchema = (*driver)(nil)
)

// The tags on all that belongs to a machine, from its birth.
const (
	tagCluster, tagUID        = "millwright-cluster", "millwright-machine"
	tagNamespace, tagMachine  = "millwright-namespace", "millwright-name"
	stateBuilding, stateGoing = "VM_STATE_BUILDING", "VM_STATE_DELETING"
)

func (d *driver) Info() sdk.Info {
	return sdk.Info{
		Name: name, Version: version, ProviderIDPrefix: "fake:///",
		// Each limit is set on purpose: what it means to leave it out stands on it in the contract.
		Limits: &sdk.Limits{
			MaxConcurrentRequests: 64,       // what the cloud's API takes at once
			MaxUserDataBytes:      64 << 10, // what the cloud takes as user data
			CreateSettle:          durationpb.New(5 * time.Second),
			Tags:                  &sdk.TagLimits{}, // the cloud takes any
		},
	}
}

func (d *driver) GetProviderSpecSchema(context.Context, *sdk.GetProviderSpecSchemaRequest) (*sdk.GetProviderSpecSchemaResponse, error) {
	return sdk.SchemaOf[spec]()
}

// machineRequest is what every request about one machine has.
type machineRequest interface {
	GetMeta() *sdk.RequestMeta
	GetMachine() *sdk.MachineRef
	GetProvider() *sdk.ProviderContext
	GetLastKnownState() []byte
}

// owned is all that the cloud has of a machine.
type owned struct {
	client
	account string
	vms     []vm // one at most, unless somebody else has made another with the same tags
	nics    []nic
}

// lastKnownState is what core keeps for this driver.
type lastKnownState struct{ Account string }

// find looks for all that the cloud has of a machine. In another account than the machine's,
// everything would look gone.
func (d *driver) find(ctx context.Context, r machineRequest) (*owned, error) {
	var with account
	if err := sdk.ReadAccount(r.GetProvider(), &with); err != nil {
		return nil, err
	}
	found := &owned{client: client{http: d.http, endpoint: d.endpoint, token: with.Token}}
	tags := map[string]string{tagCluster: r.GetMeta().GetClusterUid(), tagUID: r.GetMachine().GetUid()}
	// VMs first: one that is made in between shows by its NIC, which says that it is used.
	if err := found.list(ctx, "vms", tags, func(page *answer) { found.account, found.vms = page.Account, append(found.vms, page.VMs...) }); err != nil {
		return nil, err
	}
	var before lastKnownState
	if json.Unmarshal(r.GetLastKnownState(), &before) == nil && before.Account != "" && before.Account != found.account {
		return nil, sdk.NewError(sdk.ReasonAccountChanged,
			"The token opens the account "+found.account+", the machine was made in "+before.Account+".")
	}
	slices.SortFunc(found.vms, func(a, b vm) int { return a.Made.Compare(b.Made) })
	if err := found.list(ctx, "nics", tags, func(page *answer) { found.nics = append(found.nics, page.NICs...) }); err != nil {
		return nil, err
	}
	if marks := found.tags(); marks != nil && (marks[tagNamespace] != r.GetMachine().GetNamespace() || marks[tagMachine] != r.GetMachine().GetName()) {
		return nil, sdk.NewError(sdk.ReasonNameTaken,
			"The uid belongs to the machine "+marks[tagNamespace]+"/"+marks[tagMachine]+".")
	}
	return found, nil
}

// tags are those of any of it: all carry the same.
func (o *owned) tags() map[string]string {
	switch {
	case len(o.vms) > 0:
		return o.vms[0].Tags
	case len(o.nics) > 0:
		return o.nics[0].Tags
	}
	return nil
}

// CreateMachine makes what is missing. The uid is the cloud's client token: the same token is
// always the same VM, also when that is gone. A cloud without such a thing needs another way: see
// the guide.
func (d *driver) CreateMachine(ctx context.Context, r *sdk.CreateMachineRequest) (*sdk.Machine, error) {
	var want spec
	if err := sdk.ReadProvider(r.GetProvider(), &want); err != nil {
		return nil, err
	}
	found, err := d.find(ctx, r)
	if err != nil {
		return nil, err
	}
	if len(found.vms) == 0 {
		if err := found.create(ctx, r, want); err != nil {
			// From here on the cloud may hold something: say in which account.
			return nil, sdk.AddDetails(err, sdk.WithPartialState("", found.state()))
		}
	}
	if have := found.vms[0]; have.Flavor != want.Flavor || have.Image != want.Image {
		return nil, sdk.NewError(sdk.ReasonSpecConflict, "The VM has another flavor or image.",
			sdk.WithField("flavor", "cannot be changed"), sdk.WithField("image", "cannot be changed"))
	}
	return found.machine(), nil
}

func (o *owned) create(ctx context.Context, r *sdk.CreateMachineRequest, want spec) error {
	tags := map[string]string{}
	maps.Copy(tags, r.GetTags())
	// Those of the owner come last: nothing that was asked for takes their place.
	maps.Copy(tags, map[string]string{
		tagCluster: r.GetMeta().GetClusterUid(), tagUID: r.GetMachine().GetUid(),
		tagNamespace: r.GetMachine().GetNamespace(), tagMachine: r.GetMachine().GetName(),
	})
	body := map[string]any{"client_token": r.GetMachine().GetUid(), "name": r.GetMachine().GetName(), "tags": tags}
	made, err := o.call(ctx, http.MethodPost, "/v1/nics", body)
	if err != nil {
		return err
	}
	body["nic_id"], body["flavor"], body["image"], body["user_data"] = made.NIC.ID, want.Flavor, want.Image, r.GetUserData()
	if made, err = o.call(ctx, http.MethodPost, "/v1/vms", body); err != nil {
		return err
	}
	o.vms = []vm{made.VM}
	return nil
}

func (d *driver) GetMachineStatus(ctx context.Context, r *sdk.GetMachineStatusRequest) (*sdk.Machine, error) {
	found, err := d.find(ctx, r)
	if err == nil && found.tags() == nil {
		err = sdk.NewError(sdk.ReasonMachineNotFound, "The cloud knows nothing of this machine.")
	}
	if err != nil {
		return nil, err
	}
	return found.machine(), nil
}

// DeleteMachine deletes the VMs, and the NICs once no VM uses them; it is called until all are
// gone.
func (d *driver) DeleteMachine(ctx context.Context, r *sdk.DeleteMachineRequest) (*sdk.Machine, error) {
	found, err := d.find(ctx, r)
	if err != nil || found.tags() == nil {
		return nil, err
	}
	going := found.machine()
	going.State, going.Reason, going.Message = sdk.StateDeleting, "", ""
	going.Operation = soon()
	for _, one := range found.vms {
		if one.State != stateGoing {
			if _, err := found.call(ctx, http.MethodDelete, "/v1/vms/"+one.ID, nil); err != nil && !errors.Is(err, errGone) {
				return nil, err
			}
		}
	}
	again, err := d.find(ctx, r)
	if err != nil {
		return nil, err
	}
	if len(again.vms) > 0 {
		return going, nil
	}
	// These are what is left: a NIC that came while we looked is among them.
	for _, one := range again.nics {
		if _, err := found.call(ctx, http.MethodDelete, "/v1/nics/"+one.ID, nil); err != nil && !errors.Is(err, errGone) {
			return nil, err
		}
	}
	return nil, nil
}

// ListMachines returns a page of all that the cloud has of the cluster, or an error.
func (d *driver) ListMachines(ctx context.Context, r *sdk.ListMachinesRequest) (*sdk.ListMachinesResponse, error) {
	var with account
	if err := sdk.ReadAccount(r.GetProvider(), &with); err != nil {
		return nil, err
	}
	machines := map[string]*owned{}
	of := func(account string, tags map[string]string) *owned {
		if machines[tags[tagUID]] == nil {
			machines[tags[tagUID]] = &owned{account: account}
		}
		return machines[tags[tagUID]]
	}
	cloud, tags := client{http: d.http, endpoint: d.endpoint, token: with.Token}, map[string]string{tagCluster: r.GetMeta().GetClusterUid()}
	if err := cloud.list(ctx, "vms", tags, func(page *answer) {
		for _, one := range page.VMs {
			found := of(page.Account, one.Tags)
			found.vms = append(found.vms, one)
		}
	}); err != nil {
		return nil, err
	}
	if err := cloud.list(ctx, "nics", tags, func(page *answer) {
		for _, one := range page.NICs {
			found := of(page.Account, one.Tags)
			found.nics = append(found.nics, one)
		}
	}); err != nil {
		return nil, err
	}
	var all []*sdk.Machine
	for _, uid := range slices.Sorted(maps.Keys(machines)) {
		all = append(all, machines[uid].machine())
	}
	return sdk.Page(r, all)
}

func (o *owned) state() []byte {
	raw, _ := json.Marshal(lastKnownState{o.account}) // a string can be written
	return raw
}

// soon is when it is worth asking again about what is on its way.
func soon() *sdk.MachineOperation {
	return &sdk.MachineOperation{PollAfter: durationpb.New(time.Second)}
}

// machine says in the contract's terms what there is. It must not be empty.
func (o *owned) machine() *sdk.Machine {
	tags := o.tags()
	m := &sdk.Machine{
		Ref:        &sdk.MachineRef{Namespace: tags[tagNamespace], Name: tags[tagMachine], Uid: tags[tagUID]},
		ClusterUid: tags[tagCluster], LastKnownState: o.state(),
	}
	if len(o.vms) == 0 {
		m.CreateTime = timestamppb.New(o.nics[0].Made)
		m.State, m.Reason, m.Message = sdk.StateFailed, "CreateIncomplete", "There is a NIC, and no VM."
		if o.nics[0].VM != "" { // the VM came while we looked
			m.State, m.Reason, m.Message, m.Operation = sdk.StateCreating, "", "", soon()
		}
		return m
	}
	oldest := o.vms[0]
	m.ProviderId, m.CreateTime = oldest.ProviderID, timestamppb.New(oldest.Made)
	m.Addresses = []*sdk.MachineAddress{{Type: sdk.AddressInternalIP, Address: oldest.Address}}
	for _, other := range o.vms[1:] {
		m.DuplicateProviderIds = append(m.DuplicateProviderIds, other.ProviderID)
	}
	switch oldest.State {
	case stateBuilding:
		m.State, m.Operation = sdk.StateCreating, soon()
	case stateGoing:
		m.State, m.Operation = sdk.StateDeleting, soon()
	case "VM_STATE_RUNNING":
		m.State = sdk.StateRunning
	case "VM_STATE_STOPPED":
		m.State = sdk.StateStopped
	case "VM_STATE_GONE": // the cloud remembers it by its client token
		m.State, m.Reason, m.Message = sdk.StateFailed, "VMGone", "The VM was deleted."
	default:
		m.State, m.Reason, m.Message = sdk.StateFailed, "VMFailed", oldest.Fault
	}
	return m
}
