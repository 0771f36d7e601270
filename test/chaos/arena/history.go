package arena

import (
	"context"
	"fmt"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/chaos/judge"
)

// history is what has happened since the last call. What etcd tells is read last: it explains the
// rest.
func (a *arena) history(ctx context.Context) (judge.History, error) {
	var h judge.History
	a.mu.Lock()
	lost := a.lost
	a.mu.Unlock()
	if lost != nil {
		return h, fmt.Errorf("the history of the objects is incomplete: %w", lost)
	}
	if err := a.ledger(ctx, &h); err != nil {
		return h, err
	}
	requests, err := a.audit.Next()
	if err != nil {
		return h, err
	}
	for _, e := range requests {
		h.Writes = append(h.Writes, judge.Write{At: e.Answered, User: e.User, Verb: e.Verb, Resource: e.Resource, Namespace: e.Namespace, Name: e.Name})
	}
	if h.Finds, err = a.finder.find(); err != nil {
		return h, err
	}
	a.mu.Lock()
	h.Acts, h.Ends = a.acts, a.ends
	a.acts, a.ends = nil, nil
	a.mu.Unlock()
	h.Changes = a.view.take()
	return h, nil
}

// ledger reads on in the cloud's books.
func (a *arena) ledger(ctx context.Context, h *judge.History) error {
	backend := a.stack.Backend()
	for more := true; more; {
		page, err := backend.ListVMs(ctx, &backendv1alpha1.ListVMsRequest{AfterRevision: a.vmRevision})
		if err != nil {
			return fmt.Errorf("read the cloud's VMs: %w", err)
		}
		for _, vm := range page.GetVms() {
			a.vmRevision = max(a.vmRevision, vm.GetRevision())
			vm.UserData = nil
		}
		h.VMs, more = append(h.VMs, page.GetVms()...), page.GetMore()
	}
	for more := true; more; {
		page, err := backend.ListCalls(ctx, &backendv1alpha1.ListCallsRequest{AfterRevision: a.callRevision})
		if err != nil {
			return fmt.Errorf("read the cloud's ledger: %w", err)
		}
		for _, call := range page.GetCalls() {
			a.callRevision = max(a.callRevision, call.GetRevision())
		}
		h.Calls, more = append(h.Calls, page.GetCalls()...), page.GetMore()
	}
	held, err := backend.ListResources(ctx, &backendv1alpha1.ListResourcesRequest{})
	if err != nil {
		return fmt.Errorf("ask the cloud what it holds: %w", err)
	}
	h.Resources = held.GetResources()
	return nil
}
