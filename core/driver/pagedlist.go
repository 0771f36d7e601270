package driver

import (
	"google.golang.org/protobuf/proto"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// Bounds on a list. They are far beyond any cluster: what exceeds them does not end, or no memory
// holds it.
const (
	maxPages    = 10_000
	maxListed   = 1 << 17
	maxListSize = 256 << 20
	// maxListPages is how many deadlines of a page a whole list may take.
	maxListPages = 15
)

// pagedList is a list that is being read, page by page.
type pagedList struct {
	machines map[string]*driverv1alpha1.Machine
	// tokens are those that led to the pages so far, size is theirs in bytes.
	tokens map[string]struct{}
	size   int
}

func newPagedList() *pagedList {
	return &pagedList{machines: map[string]*driverv1alpha1.Machine{}, tokens: map[string]struct{}{"": {}}}
}

// add takes over a page. complete says that it was the last; wrong, unless empty, why the list is
// none.
func (r *pagedList) add(page *driverv1alpha1.ListMachinesResponse) (complete bool, wrong string) {
	r.size += proto.Size(page)
	if r.size > maxListSize || len(r.machines)+len(page.GetMachines()) > maxListed {
		return false, "machines: there are more than core can hold"
	}
	for _, m := range page.GetMachines() {
		uid := m.GetRef().GetUid()
		if _, twice := r.machines[uid]; twice {
			return false, "machines: one of them is listed twice"
		}
		r.machines[uid] = m
	}
	token := page.GetNextPageToken()
	if token == "" {
		return true, ""
	}
	if _, again := r.tokens[token]; again || len(r.tokens) == maxPages {
		return false, "next_page_token: the list does not end"
	}
	r.tokens[token] = struct{}{}
	return false, ""
}
