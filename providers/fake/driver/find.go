package driver

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/tags"
	"github.com/millwright-dev/millwright/sdk"
)

// keySecret is the field, and the name of the secret, that holds the key to the cloud.
const keySecret = "key"

// machineScope is the machine that a call is about, and how to reach its account.
type machineScope struct {
	cluster string
	ref     *driverv1alpha1.MachineRef
	key     string
	// account is the one that the machine was made in, as far as core has been told; else empty.
	account string
}

// machineCall is what every request about one machine has.
type machineCall interface {
	GetMeta() *driverv1alpha1.RequestMeta
	GetMachine() *driverv1alpha1.MachineRef
	GetProvider() *driverv1alpha1.ProviderContext
	GetLastKnownState() []byte
}

func scopeOf(r machineCall) machineScope {
	var state lastKnownState
	// A state that cannot be read is like one that was lost: nothing depends on it.
	_ = json.Unmarshal(r.GetLastKnownState(), &state)
	return machineScope{
		cluster: r.GetMeta().GetClusterUid(), ref: r.GetMachine(), account: state.Account,
		key: keyOf(r.GetProvider()),
	}
}

// lastKnownState is what core keeps for this driver.
type lastKnownState struct {
	Account string `json:"account"`
}

func (s machineScope) uid() string { return s.ref.GetUid() }

// ownerTags are the tags by which the machine's resources are found.
func (s machineScope) ownerTags() map[string]string {
	return map[string]string{tags.Cluster: s.cluster, tags.Machine: s.uid()}
}

// tags are all tags of a new resource.
func (s machineScope) tags(more map[string]string) map[string]string {
	all := maps.Clone(more)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, s.ownerTags())
	all[tags.Namespace], all[tags.Name] = s.ref.GetNamespace(), s.ref.GetName()
	return all
}

// find returns all that the cloud holds for the machine. An account that is not the machine's is an
// error: there, everything would look gone.
//
// The VMs are asked for first. A VM that is made in between then shows by its NIC, which says that
// it is used.
func (d *Driver) find(ctx context.Context, scope machineScope) (*ownedResources, error) {
	vms, account, err := d.vms(ctx, scope.key, scope.ownerTags())
	if err != nil {
		return nil, err
	}
	if scope.account != "" && scope.account != account {
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_ACCOUNT_CHANGED,
			"The credentials open the account "+account+", the machine was made in "+scope.account+".")
	}
	slices.SortStableFunc(vms, byAge)
	found := &ownedResources{account: account, vms: vms}
	if len(vms) > 0 {
		return found, nil
	}
	found.nics, err = d.nics(ctx, scope.key, scope.ownerTags())
	return found, err
}

// byAge puts the oldest first.
func byAge(a, b *fakecloudv1alpha1.VM) int {
	return a.GetCreateTime().AsTime().Compare(b.GetCreateTime().AsTime())
}

// vms returns all VMs that carry these tags, and the account that the key opens.
func (d *Driver) vms(ctx context.Context, key string, marks map[string]string) (vms []*fakecloudv1alpha1.VM, account string, err error) {
	for token := ""; ; {
		page, err := d.cloud.ListVMs(ctx, &fakecloudv1alpha1.ListVMsRequest{Key: key, Tags: marks, PageToken: token})
		if err != nil {
			return nil, "", translate(err)
		}
		vms = append(vms, page.GetVms()...)
		if token = page.GetNextPageToken(); token == "" {
			return vms, page.GetAccount(), nil
		}
	}
}

// tryKey fails where the cloud does not take the key.
func (d *Driver) tryKey(ctx context.Context, key string) error {
	request := &fakecloudv1alpha1.ListVMsRequest{Key: key, Tags: map[string]string{tags.Machine: "none"}, PageSize: 1}
	if _, err := d.cloud.ListVMs(ctx, request); err != nil {
		return translate(err)
	}
	return nil
}

// nics returns all NICs that carry these tags.
func (d *Driver) nics(ctx context.Context, key string, marks map[string]string) (nics []*fakecloudv1alpha1.NIC, err error) {
	for token := ""; ; {
		page, err := d.cloud.ListNICs(ctx, &fakecloudv1alpha1.ListNICsRequest{Key: key, Tags: marks, PageToken: token})
		if err != nil {
			return nil, translate(err)
		}
		nics = append(nics, page.GetNics()...)
		if token = page.GetNextPageToken(); token == "" {
			return nics, nil
		}
	}
}
