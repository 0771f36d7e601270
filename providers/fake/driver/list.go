package driver

import (
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/tags"
	"github.com/millwright-dev/millwright/sdk"
)

const (
	// maxPage is the most machines in a page: far below the size of a message.
	maxPage = 1000
	// tokenPrefix makes a page token recognizable.
	tokenPrefix = "after:"
)

// ListMachines implements sdk.Lister. Pages follow the order of uids, so that a page token says all there is to know:
// whichever driver gets it, a machine that is there throughout appears exactly once.
func (d *Driver) ListMachines(
	ctx context.Context, r *driverv1alpha1.ListMachinesRequest,
) (*driverv1alpha1.ListMachinesResponse, error) {
	after, err := parseToken(r.GetPageToken())
	if err != nil {
		return nil, err
	}
	all, err := d.all(ctx, string(r.GetProvider().GetSecrets()[keySecret]), r.GetMeta().GetClusterUid())
	if err != nil {
		return nil, err
	}
	limit := maxPage
	if n := int(r.GetPageSize()); n > 0 {
		limit = min(n, maxPage)
	}
	answer := &driverv1alpha1.ListMachinesResponse{}
	last := ""
	for _, uid := range slices.Sorted(maps.Keys(all)) {
		if uid <= after {
			continue
		}
		if len(answer.GetMachines()) == limit {
			answer.NextPageToken = tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(last))
			break
		}
		last = uid
		answer.Machines = append(answer.Machines, all[uid].machine())
	}
	return answer, nil
}

// all returns what the cloud holds for each machine of the cluster, by uid. The VMs are asked for first, for the reason
// that find gives.
func (d *Driver) all(ctx context.Context, key, cluster string) (map[string]*holding, error) {
	marks := map[string]string{tags.Cluster: cluster}
	vms, account, err := d.vms(ctx, key, marks)
	if err != nil {
		return nil, err
	}
	nics, err := d.nics(ctx, key, marks)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(vms, byAge)
	all := map[string]*holding{}
	of := func(marks map[string]string) *holding {
		uid := marks[tags.Machine]
		if all[uid] == nil {
			all[uid] = &holding{account: account}
		}
		return all[uid]
	}
	for _, vm := range vms {
		h := of(vm.GetTags())
		h.vms = append(h.vms, vm)
	}
	for _, nic := range nics {
		h := of(nic.GetTags())
		h.nics = append(h.nics, nic)
	}
	// What carries the cluster's mark and no machine's was not made by this driver.
	delete(all, "")
	return all, nil
}

func parseToken(token string) (after string, err error) {
	if token == "" {
		return "", nil
	}
	encoded, ok := strings.CutPrefix(token, tokenPrefix)
	uid, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ok || err != nil || len(uid) == 0 {
		return "", sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_PAGE_TOKEN_EXPIRED, "The page token is unknown.")
	}
	return string(uid), nil
}
