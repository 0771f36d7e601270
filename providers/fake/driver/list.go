package driver

import (
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

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

// ListMachines implements sdk.Lister. Pages follow the order of uids, so that a page token says all
// there is to know: whichever driver gets it, a machine that is there throughout appears exactly
// once.
func (d *Driver) ListMachines(
	ctx context.Context, r *driverv1alpha1.ListMachinesRequest,
) (*driverv1alpha1.ListMachinesResponse, error) {
	after, err := parseToken(r.GetPageToken())
	if err != nil {
		return nil, err
	}
	whose := listing{key: keyOf(r.GetProvider()), cluster: r.GetMeta().GetClusterUid()}
	rest, remembered := d.lists.after(whose, after)
	if !remembered {
		all, err := d.all(ctx, whose.key, whose.cluster)
		if err != nil {
			return nil, err
		}
		rest = sorted(all, after)
	}
	limit := maxPage
	if n := int(r.GetPageSize()); n > 0 {
		limit = min(n, maxPage)
	}
	answer := &driverv1alpha1.ListMachinesResponse{}
	page := rest[:min(limit, len(rest))]
	for _, one := range page {
		answer.Machines = append(answer.Machines, one.machine)
	}
	if len(page) < len(rest) {
		last := page[len(page)-1].uid
		answer.NextPageToken = tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(last))
		d.lists.keep(whose, last, rest[len(page):])
	}
	return answer, nil
}

// listed is a machine as it is listed.
type listed struct {
	uid     string
	machine *driverv1alpha1.Machine
}

// sorted returns the machines after a uid, in the order of uids.
func sorted(all map[string]*ownedResources, after string) []listed {
	rest := make([]listed, 0, len(all))
	for _, uid := range slices.Sorted(maps.Keys(all)) {
		if uid > after {
			rest = append(rest, listed{uid: uid, machine: all[uid].machine()})
		}
	}
	return rest
}

// listing is what a list is of.
type listing struct{ key, cluster string }

// listKept is how long the rest of a list is good for.
const listKept = 10 * time.Second

// lists remember what is left of the last list, so that its next page does not read everything once
// more. Nothing depends on that: a page that is not remembered is read. They are safe for
// concurrent use; the zero value is empty.
type lists struct {
	mu    sync.Mutex
	of    listing
	from  string
	rest  []listed
	until time.Time
}

func (l *lists) after(of listing, uid string) ([]listed, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if uid == "" || l.of != of || l.from != uid || time.Now().After(l.until) {
		return nil, false
	}
	return l.rest, true
}

// keep remembers a rest.
func (l *lists) keep(of listing, from string, rest []listed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of, l.from, l.rest, l.until = of, from, rest, time.Now().Add(listKept)
}

// all returns what the cloud holds for each machine of the cluster, by uid. The VMs are asked for
// first, for the reason that find gives.
func (d *Driver) all(ctx context.Context, key, cluster string) (map[string]*ownedResources, error) {
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
	all := map[string]*ownedResources{}
	of := func(marks map[string]string) *ownedResources {
		uid := marks[tags.Machine]
		if all[uid] == nil {
			all[uid] = &ownedResources{account: account}
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
