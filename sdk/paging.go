package sdk

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const (
	// maxPage is the most machines in a page, also where more are asked for.
	maxPage = 1000
	// maxPageBytes leaves room in a message for what goes around the machines.
	maxPageBytes = contract.MaxMessageBytes / 2
	// pageAfter begins every page token; the last uid of the page follows.
	pageAfter = "after:"
)

// Page returns the page that a request asks for, out of all machines of its cluster. Pages follow
// the order of uids, and a page token says all there is to know: any driver goes on from any
// other's, and a machine that is there throughout is on exactly one page. A page stays far below
// the size of a message. A token that Page has not made is PAGE_TOKEN_EXPIRED. It changes nothing
// in all; the answer shares its machines.
func Page(r *driverv1alpha1.ListMachinesRequest, all []*driverv1alpha1.Machine) (*driverv1alpha1.ListMachinesResponse, error) {
	after, ours := strings.CutPrefix(r.GetPageToken(), pageAfter)
	if r.GetPageToken() != "" && (!ours || after == "") {
		return nil, NewError(driverv1alpha1.ErrorReason_ERROR_REASON_PAGE_TOKEN_EXPIRED, "The page token is unknown.")
	}
	limit := maxPage
	if n := int(r.GetPageSize()); n > 0 {
		limit = min(n, maxPage)
	}
	sorted := slices.SortedFunc(slices.Values(all), func(a, b *driverv1alpha1.Machine) int {
		return cmp.Compare(a.GetRef().GetUid(), b.GetRef().GetUid())
	})
	page, bytes := &driverv1alpha1.ListMachinesResponse{}, 0
	for _, m := range sorted {
		uid := m.GetRef().GetUid()
		if uid <= after {
			continue
		}
		bytes += proto.Size(m)
		if n := len(page.GetMachines()); n == limit || n > 0 && bytes > maxPageBytes {
			page.NextPageToken = pageAfter + page.GetMachines()[n-1].GetRef().GetUid()
			break
		}
		page.Machines = append(page.Machines, m)
	}
	return page, nil
}
