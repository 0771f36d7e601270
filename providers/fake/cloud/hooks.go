package cloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/tags"
)

// maxHookPage is the most that a hook returns at once, and maxHookBytes the most user data: answers have to stay
// below the size that gRPC receives by default.
const (
	maxHookPage  = 1000
	maxHookBytes = 2 << 20
)

// hooks serves the hooks of tests.
type hooks struct {
	backendv1alpha1.UnimplementedBackendServiceServer
	cloud *Cloud
}

// GetBackendInfo implements the service.
func (h *hooks) GetBackendInfo(context.Context, *backendv1alpha1.GetBackendInfoRequest) (*backendv1alpha1.GetBackendInfoResponse, error) {
	return &backendv1alpha1.GetBackendInfoResponse{
		Name: "fake", Operations: operations, CreateOperations: createOperations, DeleteOperations: deleteOperations, Effects: effects,
	}, nil
}

// ListVMs implements the service.
func (h *hooks) ListVMs(ctx context.Context, r *backendv1alpha1.ListVMsRequest) (*backendv1alpha1.ListVMsResponse, error) {
	answer := &backendv1alpha1.ListVMsResponse{}
	h.cloud.poll(ctx, r.GetWait().AsDuration(), func() bool {
		answer.Vms, answer.More = h.vms(r)
		return len(answer.GetVms()) > 0
	})
	return answer, ctx.Err()
}

func (h *hooks) vms(r *backendv1alpha1.ListVMsRequest) (found []*backendv1alpha1.VM, more bool) {
	limit, size := pageLimit(r.GetMaxResults()), 0
	for _, ch := range h.cloud.vmHistory.after(r.GetAfterRevision()) {
		v := h.cloud.vms[ch.key]
		if v.Revision != ch.revision || r.GetClusterUid() != "" && r.GetClusterUid() != v.clusterUID() {
			continue
		}
		if len(found) == limit || size > maxHookBytes {
			return found, true
		}
		found = append(found, v.hooked())
		size += len(v.userData)
	}
	return found, false
}

// ListResources implements the service.
func (h *hooks) ListResources(_ context.Context, r *backendv1alpha1.ListResourcesRequest) (*backendv1alpha1.ListResourcesResponse, error) {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	answer := &backendv1alpha1.ListResourcesResponse{}
	add := func(kind string, b *record) {
		if matches(r.GetClusterUid(), b.clusterUID()) && matches(r.GetMachineUid(), b.machineUID()) {
			answer.Resources = append(answer.Resources, &backendv1alpha1.Resource{
				Kind: kind, Id: b.ID, Name: b.Name, ClusterUid: b.clusterUID(), MachineUid: b.machineUID(), CreateTime: timestamppb.New(b.Created),
			})
		}
	}
	for _, n := range h.cloud.nics.ordered {
		add(kindNIC, n.base())
	}
	for _, v := range h.cloud.alive.ordered {
		add(kindVM, v.base())
	}
	return answer, nil
}

// ListCalls implements the service.
func (h *hooks) ListCalls(ctx context.Context, r *backendv1alpha1.ListCallsRequest) (*backendv1alpha1.ListCallsResponse, error) {
	answer := &backendv1alpha1.ListCallsResponse{}
	h.cloud.poll(ctx, r.GetWait().AsDuration(), func() bool {
		answer.Calls, answer.More = h.calls(r)
		return len(answer.GetCalls()) > 0
	})
	return answer, ctx.Err()
}

func (h *hooks) calls(r *backendv1alpha1.ListCallsRequest) (found []*backendv1alpha1.Call, more bool) {
	limit := pageLimit(r.GetMaxResults())
	for _, ch := range h.cloud.calls.history.after(r.GetAfterRevision()) {
		one := h.cloud.calls.calls[ch.key]
		if !h.cloud.calls.current(ch) || !matches(r.GetOperation(), one.Operation) || !matches(r.GetMachineUid(), one.MachineUID) {
			continue
		}
		if len(found) == limit {
			return found, true
		}
		found = append(found, one.wire())
	}
	return found, false
}

// GetTotals implements the service.
func (h *hooks) GetTotals(_ context.Context, r *backendv1alpha1.GetTotalsRequest) (*backendv1alpha1.GetTotalsResponse, error) {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	cluster := r.GetClusterUid()
	answer := &backendv1alpha1.GetTotalsResponse{Calls: maps.Clone(h.cloud.calls.counts[cluster]), VmsPeak: h.cloud.peak[cluster]}
	for _, v := range h.cloud.vms {
		if !matches(cluster, v.clusterUID()) {
			continue
		}
		answer.VmsCreated++
		if v.State == gone {
			answer.VmsDeleted++
			continue
		}
		answer.ResourcesLeft++
	}
	for _, n := range h.cloud.nics.ordered {
		if matches(cluster, n.clusterUID()) {
			answer.ResourcesLeft++
		}
	}
	return answer, nil
}

// InjectFault implements the service.
func (h *hooks) InjectFault(_ context.Context, r *backendv1alpha1.InjectFaultRequest) (*backendv1alpha1.InjectFaultResponse, error) {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	id, err := h.cloud.faults.inject(r.GetFault(), h.cloud.seq)
	if err != nil {
		return nil, err
	}
	return &backendv1alpha1.InjectFaultResponse{Id: id}, nil
}

// ListFaults implements the service.
func (h *hooks) ListFaults(context.Context, *backendv1alpha1.ListFaultsRequest) (*backendv1alpha1.ListFaultsResponse, error) {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	return &backendv1alpha1.ListFaultsResponse{Faults: h.cloud.faults.list()}, nil
}

// RemoveFaults implements the service.
func (h *hooks) RemoveFaults(_ context.Context, r *backendv1alpha1.RemoveFaultsRequest) (*backendv1alpha1.RemoveFaultsResponse, error) {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	h.cloud.faults.remove(r.GetIds())
	return &backendv1alpha1.RemoveFaultsResponse{}, nil
}

// SetQuota implements the service.
func (h *hooks) SetQuota(_ context.Context, r *backendv1alpha1.SetQuotaRequest) (*backendv1alpha1.SetQuotaResponse, error) {
	kinds := []string{kindVM, kindNIC}
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	quota := maps.Clone(h.cloud.quota)
	for kind, limit := range r.GetLimits() {
		if !slices.Contains(kinds, kind) {
			return nil, status.Error(codes.InvalidArgument, fmt.Sprintf("limits: no kind of resource is called %q; there are %q", kind, kinds))
		}
		quota[kind] = limit
	}
	h.cloud.quota, h.cloud.quotaSet = quota, true
	return &backendv1alpha1.SetQuotaResponse{}, h.cloud.write(entry{Quota: quota})
}

// poll calls look, under the lock, until it returns true, the wait is over, or the caller or the cloud goes.
func (c *Cloud) poll(ctx context.Context, wait time.Duration, look func() bool) {
	timer := time.NewTimer(max(wait, 0))
	defer timer.Stop()
	for {
		c.mu.Lock()
		found, changed := look(), c.changed
		c.mu.Unlock()
		if found || wait <= 0 {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case <-c.closed:
			return
		}
	}
}

func pageLimit(wanted int32) int {
	if wanted > 0 && wanted < maxHookPage {
		return int(wanted)
	}
	return maxHookPage
}

// matches says whether got is what is wanted; an empty wish is for anything.
func matches(wanted, got string) bool { return wanted == "" || wanted == got }

// hooked is the VM as tests see it.
func (v *vm) hooked() *backendv1alpha1.VM {
	out := &backendv1alpha1.VM{
		Id: v.ID, ProviderId: v.providerID(), Name: v.Name, ClusterUid: v.clusterUID(), MachineUid: v.machineUID(),
		State: backendv1alpha1.VMState(v.State), UserData: slices.Clone(v.userData), Tags: withoutOurs(v.Tags),
		CreateTime: timestamppb.New(v.Created), DeleteTime: stamp(v.Deleted),
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
