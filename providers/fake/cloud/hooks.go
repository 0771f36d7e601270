package cloud

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/tags"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// hooks serves the hooks of tests.
type hooks struct {
	testcloud.Hooks
	cloud *Cloud
}

func newHooks(c *Cloud) *hooks { return &hooks{Hooks: testcloud.Hooks{Front: c.front}, cloud: c} }

// GetBackendInfo implements the service.
func (h *hooks) GetBackendInfo(context.Context, *backendv1alpha1.GetBackendInfoRequest) (*backendv1alpha1.GetBackendInfoResponse, error) {
	return &backendv1alpha1.GetBackendInfoResponse{
		Name: "fake", Operations: operations, CreateOperations: createOperations, DeleteOperations: deleteOperations, Effects: testcloud.AllEffects(),
	}, nil
}

// ListVMs implements the service.
func (h *hooks) ListVMs(ctx context.Context, r *backendv1alpha1.ListVMsRequest) (*backendv1alpha1.ListVMsResponse, error) {
	answer := &backendv1alpha1.ListVMsResponse{}
	h.cloud.front.Poll(ctx, r.GetWait().AsDuration(), func() bool {
		answer.Vms, answer.More = h.vms(r)
		return len(answer.GetVms()) > 0
	})
	return answer, ctx.Err()
}

func (h *hooks) vms(r *backendv1alpha1.ListVMsRequest) (found []*backendv1alpha1.VM, more bool) {
	return testcloud.Page(h.cloud.store.vmHistory.After(r.GetAfterRevision()), r.GetMaxResults(), func(ch testcloud.Change) (*backendv1alpha1.VM, int) {
		v := h.cloud.store.vms[ch.Key]
		if v.Revision != ch.Revision || !testcloud.Matches(r.GetClusterUid(), v.clusterUID()) {
			return nil, 0
		}
		return v.hooked(), len(v.userData)
	})
}

// ListResources implements the service.
func (h *hooks) ListResources(_ context.Context, r *backendv1alpha1.ListResourcesRequest) (*backendv1alpha1.ListResourcesResponse, error) {
	h.cloud.front.Lock()
	defer h.cloud.front.Unlock()
	answer := &backendv1alpha1.ListResourcesResponse{}
	add := func(kind string, b *record) {
		if testcloud.Matches(r.GetClusterUid(), b.clusterUID()) && testcloud.Matches(r.GetMachineUid(), b.machineUID()) {
			answer.Resources = append(answer.Resources, &backendv1alpha1.Resource{
				Kind: kind, Id: b.ID, Name: b.Name, ClusterUid: b.clusterUID(), MachineUid: b.machineUID(), CreateTime: timestamppb.New(b.Created),
			})
		}
	}
	for _, n := range h.cloud.store.nics.ordered {
		add(kindNIC, n.base())
	}
	for _, v := range h.cloud.store.alive.ordered {
		add(kindVM, v.base())
	}
	return answer, nil
}

// GetTotals implements the service.
func (h *hooks) GetTotals(_ context.Context, r *backendv1alpha1.GetTotalsRequest) (*backendv1alpha1.GetTotalsResponse, error) {
	h.cloud.front.Lock()
	defer h.cloud.front.Unlock()
	cluster := r.GetClusterUid()
	answer := &backendv1alpha1.GetTotalsResponse{Calls: h.cloud.front.Ledger.Counts(cluster), VmsPeak: h.cloud.store.peak[cluster]}
	for _, v := range h.cloud.store.vms {
		if !testcloud.Matches(cluster, v.clusterUID()) {
			continue
		}
		answer.VmsCreated++
		if v.State == gone {
			answer.VmsDeleted++
			continue
		}
		answer.ResourcesLeft++
	}
	for _, n := range h.cloud.store.nics.ordered {
		if testcloud.Matches(cluster, n.clusterUID()) {
			answer.ResourcesLeft++
		}
	}
	return answer, nil
}

// SetQuota implements the service.
func (h *hooks) SetQuota(_ context.Context, r *backendv1alpha1.SetQuotaRequest) (*backendv1alpha1.SetQuotaResponse, error) {
	kinds := []string{kindVM, kindNIC}
	h.cloud.front.Lock()
	defer h.cloud.front.Unlock()
	quota := maps.Clone(h.cloud.store.quota)
	for kind, limit := range r.GetLimits() {
		if !slices.Contains(kinds, kind) {
			return nil, status.Error(codes.InvalidArgument, fmt.Sprintf("limits: no kind of resource is called %q; there are %q", kind, kinds))
		}
		quota[kind] = limit
	}
	h.cloud.store.quota, h.cloud.store.quotaSet = quota, true
	return &backendv1alpha1.SetQuotaResponse{}, h.cloud.write(entry{Quota: quota})
}

// hooked is the VM as tests see it.
func (v *vm) hooked() *backendv1alpha1.VM {
	out := &backendv1alpha1.VM{
		Id: v.ID, ProviderId: v.providerID(), Name: v.Name, ClusterUid: v.clusterUID(), MachineUid: v.machineUID(),
		State: backendv1alpha1.VMState(v.State), UserData: slices.Clone(v.userData), Tags: withoutOurs(v.Tags),
		CreateTime: timestamppb.New(v.Created), DeleteTime: testcloud.Stamp(v.Deleted),
		InstanceType: v.Flavor, Region: region, Zone: v.Zone, Revision: v.Revision,
	}
	if v.Address != "" {
		out.Addresses = []*backendv1alpha1.VMAddress{{Type: "InternalIP", Address: v.Address}}
	}
	return out
}

// withoutOurs returns the tags that are not the driver's own marks.
func withoutOurs(all map[string]string) map[string]string {
	rest := maps.Clone(all)
	delete(rest, tags.Cluster)
	delete(rest, tags.Machine)
	return rest
}
