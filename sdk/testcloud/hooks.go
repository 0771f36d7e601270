package testcloud

import (
	"context"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// maxPage is the most that a hook returns at once, and maxPageBytes the most user data: answers
// have to stay below the size that gRPC receives by default.
const (
	maxPage      = 1000
	maxPageBytes = 2 << 20
)

// Hooks serve what the front knows: calls and faults. What a cloud knows besides, its own hooks
// serve around these.
type Hooks struct {
	backendv1alpha1.UnimplementedBackendServiceServer
	Front *Front
}

// ListCalls implements the service.
func (h *Hooks) ListCalls(ctx context.Context, r *backendv1alpha1.ListCallsRequest) (*backendv1alpha1.ListCallsResponse, error) {
	answer := &backendv1alpha1.ListCallsResponse{}
	ledger := &h.Front.Ledger
	h.Front.Poll(ctx, r.GetWait().AsDuration(), func() bool {
		changes := ledger.history.After(r.GetAfterRevision())
		answer.Calls, answer.More = Page(changes, r.GetMaxResults(), func(ch Change) (*backendv1alpha1.Call, int) {
			one := ledger.calls[ch.Key]
			if !ledger.current(ch) || !Matches(r.GetOperation(), one.Operation) || !named(one.Machines, r.GetMachineUid(), h.Front.options.Aliases) {
				return nil, 0
			}
			return one.told(r.GetMachineUid()), 0
		})
		return len(answer.GetCalls()) > 0
	})
	return answer, ctx.Err()
}

// InjectFault implements the service.
func (h *Hooks) InjectFault(_ context.Context, r *backendv1alpha1.InjectFaultRequest) (*backendv1alpha1.InjectFaultResponse, error) {
	h.Front.Lock()
	defer h.Front.Unlock()
	id, err := h.Front.faults.inject(r.GetFault(), h.Front.options.Newest())
	if err != nil {
		return nil, err
	}
	return &backendv1alpha1.InjectFaultResponse{Id: id}, nil
}

// ListFaults implements the service.
func (h *Hooks) ListFaults(context.Context, *backendv1alpha1.ListFaultsRequest) (*backendv1alpha1.ListFaultsResponse, error) {
	h.Front.Lock()
	defer h.Front.Unlock()
	return &backendv1alpha1.ListFaultsResponse{Faults: h.Front.faults.list()}, nil
}

// RemoveFaults implements the service.
func (h *Hooks) RemoveFaults(_ context.Context, r *backendv1alpha1.RemoveFaultsRequest) (*backendv1alpha1.RemoveFaultsResponse, error) {
	h.Front.Lock()
	defer h.Front.Unlock()
	h.Front.faults.remove(r.GetIds())
	return &backendv1alpha1.RemoveFaultsResponse{}, nil
}

// Page returns what show makes of changes, without those of which it makes nothing. It returns as
// much as a hook may at once, and at most limit of them where that is above 0. The result more
// says that some were left out. For each change, show also returns how many bytes of user data
// it shows.
func Page[T comparable](changes []Change, limit int32, show func(Change) (one T, bytes int)) (page []T, more bool) {
	most, size := maxPage, 0
	if limit > 0 {
		most = min(most, int(limit))
	}
	var nothing T
	for _, ch := range changes {
		one, bytes := show(ch)
		if one == nothing {
			continue
		}
		if len(page) == most || size > maxPageBytes {
			return page, true
		}
		page = append(page, one)
		size += bytes
	}
	return page, false
}
