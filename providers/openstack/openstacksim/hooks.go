package openstacksim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// maxHookPage is the most that a hook returns at once, and maxHookBytes the most user data: answers have to stay
// below the size that gRPC receives by default.
const (
	maxHookPage  = 1000
	maxHookBytes = 2 << 20
)

// The kinds of resources, as quotas and hooks name them.
const (
	kindVM         = "vm"
	kindPort       = "port"
	kindFloatingIP = "floatingip"
	kindVolume     = "volume"
	kindTrunk      = "trunk"
)

// hooks serves the hooks of tests.
type hooks struct {
	backendv1alpha1.UnimplementedBackendServiceServer
	cloud *Cloud
}

// GetBackendInfo implements the service.
func (h *hooks) GetBackendInfo(context.Context, *backendv1alpha1.GetBackendInfoRequest) (*backendv1alpha1.GetBackendInfoResponse, error) {
	return &backendv1alpha1.GetBackendInfoResponse{
		Name: "openstack", Operations: driverOperations(), CreateOperations: createOperations, DeleteOperations: deleteOperations,
		Effects: h.cloud.faults.effects,
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
	for _, ch := range h.cloud.history.after(r.GetAfterRevision()) {
		s := h.cloud.servers[ch.key]
		if s.Revision != ch.revision || !matches(r.GetClusterUid(), s.Owner.Cluster) {
			continue
		}
		if len(found) == limit || size > maxHookBytes {
			return found, true
		}
		found = append(found, h.cloud.vm(s))
		size += len(s.userData)
	}
	return found, false
}

// ListResources implements the service. What the world has from the beginning is not in it.
func (h *hooks) ListResources(_ context.Context, r *backendv1alpha1.ListResourcesRequest) (*backendv1alpha1.ListResourcesResponse, error) {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	answer := &backendv1alpha1.ListResourcesResponse{}
	h.cloud.each(func(kind string, b *record, o owner) {
		if matches(r.GetClusterUid(), o.Cluster) && matches(r.GetMachineUid(), o.Machine) {
			answer.Resources = append(answer.Resources, &backendv1alpha1.Resource{
				Kind: kind, Id: b.ID, Name: b.Name, ClusterUid: o.Cluster, MachineUid: o.Machine, CreateTime: timestamppb.New(b.Created),
			})
		}
	})
	return answer, nil
}

// each calls visit with everything that was made and exists.
func (c *Cloud) each(visit func(kind string, b *record, o owner)) {
	for _, p := range c.ports.ordered {
		if !strings.HasPrefix(p.DeviceOwner, "network:") {
			visit(kindPort, p.base(), c.ownerOfPort(p))
		}
	}
	for _, s := range c.alive.ordered {
		visit(kindVM, s.base(), s.Owner)
	}
	for _, f := range c.floatingIPs.ordered {
		visit(kindFloatingIP, f.base(), f.Owner)
	}
	for _, v := range c.volumes.ordered {
		visit(kindVolume, v.base(), v.Owner)
	}
	for _, k := range c.trunks.ordered {
		visit(kindTrunk, k.base(), k.Owner)
	}
}

// ownerOfPort is whose a port is: its own marks say so, or, where Nova made it, its server's.
func (c *Cloud) ownerOfPort(p *port) owner {
	if p.Owner != (owner{}) || p.Name != "" {
		return p.Owner
	}
	if s := c.alive.byID[p.DeviceID]; s != nil {
		return s.Owner
	}
	return owner{}
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
		if !h.cloud.calls.current(ch) || !matches(r.GetOperation(), one.Operation) || !one.Subjects.names("", r.GetMachineUid()) {
			continue
		}
		if len(found) == limit {
			return found, true
		}
		found = append(found, one.wire(r.GetMachineUid()))
	}
	return found, false
}

// GetTotals implements the service.
func (h *hooks) GetTotals(_ context.Context, r *backendv1alpha1.GetTotalsRequest) (*backendv1alpha1.GetTotalsResponse, error) {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	cluster := r.GetClusterUid()
	answer := &backendv1alpha1.GetTotalsResponse{Calls: maps.Clone(h.cloud.calls.counts[cluster]), VmsPeak: h.cloud.peak[cluster]}
	for _, s := range h.cloud.servers {
		if !matches(cluster, s.Owner.Cluster) {
			continue
		}
		answer.VmsCreated++
		if s.gone() {
			answer.VmsDeleted++
		}
	}
	h.cloud.each(func(_ string, _ *record, o owner) {
		if matches(cluster, o.Cluster) {
			answer.ResourcesLeft++
		}
	})
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
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	for kind := range r.GetLimits() {
		if !slices.Contains(quotaKinds, kind) {
			return nil, status.Error(codes.InvalidArgument, fmt.Sprintf("limits: no kind of resource is called %q; there are %q", kind, quotaKinds))
		}
	}
	maps.Copy(h.cloud.quota, r.GetLimits())
	h.cloud.saveQuota()
	return &backendv1alpha1.SetQuotaResponse{}, h.cloud.flush()
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
func matches(wanted, got string) bool { return cmp.Or(wanted, got) == got }
