package openstacksim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/network"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
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
		Name: "openstack", Operations: driverOperations(h.cloud.routes), CreateOperations: createOperations, DeleteOperations: deleteOperations,
		Effects: h.cloud.effects(),
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
	return testcloud.Page(h.cloud.nova.Servers.History.After(r.GetAfterRevision()), r.GetMaxResults(), func(ch testcloud.Change) (*backendv1alpha1.VM, int) {
		s := h.cloud.nova.Servers.All[ch.Key]
		if s.Revision != ch.Revision || !testcloud.Matches(r.GetClusterUid(), s.Owner.Cluster) {
			return nil, 0
		}
		return h.vm(s), len(s.UserData)
	})
}

// ListResources implements the service. What the world has from the beginning is not in it.
func (h *hooks) ListResources(_ context.Context, r *backendv1alpha1.ListResourcesRequest) (*backendv1alpha1.ListResourcesResponse, error) {
	h.cloud.front.Lock()
	defer h.cloud.front.Unlock()
	answer := &backendv1alpha1.ListResourcesResponse{}
	h.each(func(kind string, b *state.Record, o state.Owner) {
		if testcloud.Matches(r.GetClusterUid(), o.Cluster) && testcloud.Matches(r.GetMachineUid(), o.Machine) {
			answer.Resources = append(answer.Resources, &backendv1alpha1.Resource{
				Kind: kind, Id: b.ID, Name: b.Name, ClusterUid: o.Cluster, MachineUid: o.Machine, CreateTime: timestamppb.New(b.Created),
			})
		}
	})
	return answer, nil
}

// each calls visit with everything that was made and exists.
func (h *hooks) each(visit func(kind string, b *state.Record, o state.Owner)) {
	for _, p := range h.cloud.neutron.Ports.Ordered {
		if !strings.HasPrefix(p.DeviceOwner, "network:") {
			visit(state.KindPort, p.Base(), h.ownerOfPort(p))
		}
	}
	for _, s := range h.cloud.nova.Servers.Alive.Ordered {
		visit(state.KindVM, s.Base(), s.Owner)
	}
	for _, f := range h.cloud.neutron.FloatingIPs.Ordered {
		visit(state.KindFloatingIP, f.Base(), f.Owner)
	}
	for _, v := range h.cloud.cinder.Volumes.Ordered {
		visit(state.KindVolume, v.Base(), v.Owner)
	}
	for _, k := range h.cloud.neutron.Trunks.Ordered {
		visit(state.KindTrunk, k.Base(), k.Owner)
	}
}

// ownerOfPort is whose a port is: its own marks say so, or, where Nova made it, its server's.
func (h *hooks) ownerOfPort(p *network.Port) state.Owner {
	if p.Owner != (state.Owner{}) || p.Name != "" {
		return p.Owner
	}
	if s := h.cloud.nova.Servers.Alive.ByID[p.DeviceID]; s != nil {
		return s.Owner
	}
	return state.Owner{}
}

// GetTotals implements the service.
func (h *hooks) GetTotals(_ context.Context, r *backendv1alpha1.GetTotalsRequest) (*backendv1alpha1.GetTotalsResponse, error) {
	h.cloud.front.Lock()
	defer h.cloud.front.Unlock()
	cluster := r.GetClusterUid()
	answer := &backendv1alpha1.GetTotalsResponse{Calls: h.cloud.front.Ledger.Counts(cluster), VmsPeak: h.cloud.nova.Servers.Peak[cluster]}
	for _, s := range h.cloud.nova.Servers.All {
		if !testcloud.Matches(cluster, s.Owner.Cluster) {
			continue
		}
		answer.VmsCreated++
		if s.Gone() {
			answer.VmsDeleted++
		}
	}
	h.each(func(_ string, _ *state.Record, o state.Owner) {
		if testcloud.Matches(cluster, o.Cluster) {
			answer.ResourcesLeft++
		}
	})
	return answer, nil
}

// SetQuota implements the service.
func (h *hooks) SetQuota(_ context.Context, r *backendv1alpha1.SetQuotaRequest) (*backendv1alpha1.SetQuotaResponse, error) {
	h.cloud.front.Lock()
	defer h.cloud.front.Unlock()
	for kind := range r.GetLimits() {
		if !slices.Contains(state.QuotaKinds(), kind) {
			return nil, status.Error(codes.InvalidArgument, fmt.Sprintf("limits: no kind of resource is called %q; there are %q", kind, state.QuotaKinds()))
		}
	}
	h.cloud.store.Quotas.SetForAll(r.GetLimits())
	return &backendv1alpha1.SetQuotaResponse{}, h.cloud.store.Journal.Flush()
}
