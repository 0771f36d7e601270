package mutant

import (
	"fmt"
	"slices"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

type page = driverv1alpha1.ListMachinesResponse

func ofLists() []Mutant {
	return []Mutant{
		{Name: "forgetting-one", Check: "list/complete", mutate: answered(func(a *page) {
			if n := len(a.GetMachines()); n > 0 {
				a.Machines = a.GetMachines()[:n-1]
			}
		})},
		{Name: "listing-uids-alone", Check: "list/nameless", mutate: answered(func(a *page) {
			for _, m := range a.GetMachines() {
				m.Ref.Namespace, m.Ref.Name = m.GetRef().GetUid(), m.GetRef().GetUid()
			}
		})},
		{Name: "listing-all-clusters", Check: "list/scope", mutate: listingAllClusters},
		{Name: "ignoring-page-size", Check: "list/pages", mutate: asked(func(r *listReq) { r.PageSize = 0 })},
		{Name: "losing-between-pages", Check: "list/pages", mutate: losingBetweenPages},
		{Name: "paging-by-number", Check: "list/pages", mutate: pagingByNumber},
		{Name: "reading-one-page", Check: "list/many", mutate: answered(func(a *page) {
			a.Machines, a.NextPageToken = a.GetMachines()[:min(10, len(a.GetMachines()))], ""
		})},
		{Name: "taking-any-token", Check: "list/bad-token", mutate: asked(func(r *listReq) {
			if r.GetPageToken() == "millwright-conformance-unknown" {
				r.PageToken = ""
			}
		})},
		{Name: "without-leftovers", Check: "list/leftovers", mutate: answered(func(a *page) {
			a.Machines = slices.DeleteFunc(a.GetMachines(), func(m *machine) bool { return m.GetProviderId() == "" })
		})},
		{Name: "whole-leftovers", Check: "list/leftovers", mutate: described(func(m *machine) {
			if m.GetProviderId() == "" {
				m.State = driverv1alpha1.MachineState_MACHINE_STATE_CREATING
			}
		})},
		{Name: "empty-on-failure", Check: "list/partial-failure", mutate: emptyOnFailure},
		{Name: "timeless", Check: "list/create-time", mutate: described(func(m *machine) { m.CreateTime = nil })},
	}
}

// listingAllClusters lists the machines of the cluster that asked first, whoever asks.
func listingAllClusters(next handler) handler {
	var first atomic.Pointer[string]
	remember := asked(func(r *createReq) { first.CompareAndSwap(nil, &r.GetMeta().ClusterUid) })
	return asked(func(r *listReq) {
		if cluster := first.Load(); cluster != nil {
			r.Meta.ClusterUid = *cluster
		}
	})(remember(next))
}

// losingBetweenPages leaves out what would be on the second page.
func losingBetweenPages(next handler) handler {
	return instead(func(r *listReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		answer, err := next(r)
		if a, ok := answer.(*page); ok && err == nil && r.GetPageToken() != "" {
			a.Machines = nil
		}
		return answer, err
	})(next)
}

// pagingByNumber goes on at the number of machines that it has listed, the newest first: what was
// deleted meanwhile moves the others.
func pagingByNumber(next handler) handler {
	return instead(func(r *listReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		size, from := int(r.GetPageSize()), 0
		if _, err := fmt.Sscanf(r.GetPageToken(), "number-%d", &from); err != nil && r.GetPageToken() != "" || size == 0 {
			return next(r)
		}
		r.PageSize, r.PageToken = 0, ""
		answer, err := next(r)
		a, ok := answer.(*page)
		if !ok || err != nil {
			return answer, err
		}
		slices.SortStableFunc(a.GetMachines(), func(m, n *machine) int { return n.GetCreateTime().AsTime().Compare(m.GetCreateTime().AsTime()) })
		end := min(from+size, len(a.GetMachines()))
		if end < len(a.GetMachines()) {
			a.NextPageToken = fmt.Sprintf("number-%d", end)
		}
		a.Machines = a.GetMachines()[min(from, end):end]
		return a, nil
	})(next)
}

// emptyOnFailure takes a list that it cannot have for one that holds nothing.
func emptyOnFailure(next handler) handler {
	return instead(func(r *listReq, next func(proto.Message) (proto.Message, error)) (proto.Message, error) {
		answer, err := next(r)
		if err != nil {
			return &page{}, nil //nolint:nilerr // that is the mutation
		}
		return answer, nil
	})(next)
}
