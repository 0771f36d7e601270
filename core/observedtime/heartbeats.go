package observedtime

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/core/drain"
)

// +kubebuilder:rbac:roleName=millwright-manager-workload,groups=coordination.k8s.io,namespace=kube-node-lease,resources=leases,verbs=get

const (
	// leaseInterval lies between two looks at Leases; kubelets renew theirs as often.
	leaseInterval = 10 * time.Second
	// leasesRead is how many Leases one look reads.
	leasesRead = 5
	// heartbeatsWanted is for how long it is looked after a drain has last asked for it.
	heartbeatsWanted = time.Minute
	// leaseDuration is a Lease's where it says none: the kubelet's default.
	leaseDuration = 40 * time.Second
)

// heartbeats tell whether most Nodes report, so that one that does not is to be taken at its word:
// see ADR 0020. They are looked at only while a drain meets a silent Node. Kubelets' clocks are
// compared with themselves alone.
type heartbeats struct {
	// nodes is a cache, leases the API server. read finds out by them whether most Nodes report.
	nodes, leases client.Reader
	read          func(ctx context.Context, now time.Time) bool

	mu     sync.Mutex
	wanted time.Time

	// The rest belongs to whoever calls look, one at a time.
	seen   map[string]sighting
	looked time.Time
	found  bool
}

// sighting is what a Lease said, and when it was seen to say something else than before; zero for
// never.
type sighting struct{ renewed, at time.Time }

func newHeartbeats(nodes, leases client.Reader) *heartbeats {
	h := &heartbeats{nodes: nodes, leases: leases}
	h.read = h.report
	return h
}

// want has heartbeats looked at for a while.
func (h *heartbeats) want(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wanted = now
}

// look says whether most Nodes report, as far as was found within leaseInterval.
func (h *heartbeats) look(ctx context.Context, now time.Time) bool {
	h.mu.Lock()
	wanted := !h.wanted.IsZero() && now.Sub(h.wanted) <= heartbeatsWanted
	h.mu.Unlock()
	if !wanted {
		h.seen, h.looked, h.found = nil, time.Time{}, false
		return false
	}
	if now.Sub(h.looked) >= leaseInterval {
		h.looked, h.found = now, h.read(ctx, now)
	}
	return h.found
}

// report says whether most Nodes are said to report, and most Leases of a few of these are seen to
// be renewed.
func (h *heartbeats) report(ctx context.Context, now time.Time) bool {
	var nodes corev1.NodeList
	if err := h.nodes.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return false
	}
	names, most := reportingOf(nodes.Items)
	return most && h.renewing(ctx, h.sample(names), now)
}

// reportingOf names the Nodes that are said to report, and says whether they are at least half of
// all but one: the one that is asked for is silent. Where there is no other Node nobody can tell
// more than that the API server answers.
func reportingOf(nodes []corev1.Node) (names []string, most bool) {
	for i := range nodes {
		if node := &nodes[i]; drain.ReadyCondition(node).Type != "" && !drain.Silent(node) {
			names = append(names, node.Name)
		}
	}
	return names, 2*len(names) >= len(nodes)-1
}

// sample chooses a few Nodes, those first whose Leases are known.
func (h *heartbeats) sample(names []string) []string {
	var known, others []string
	for _, name := range names {
		if _, is := h.seen[name]; is {
			known = append(known, name)
			continue
		}
		others = append(others, name)
	}
	names = append(known, others...)
	return names[:min(len(names), leasesRead)]
}

// renewing reads the Leases of the Nodes, and says whether at least half of them are seen to be
// renewed.
func (h *heartbeats) renewing(ctx context.Context, names []string, now time.Time) bool {
	before, renewing := h.seen, 0
	h.seen = make(map[string]sighting, len(names))
	for _, name := range names {
		lease, err := h.leaseOf(ctx, name)
		if err != nil || renewedAt(lease).IsZero() {
			continue
		}
		is, known := before[name]
		if renewed := renewedAt(lease); !known {
			is.renewed = renewed
		} else if !renewed.Equal(is.renewed) {
			is = sighting{renewed: renewed, at: now}
		}
		if now.Sub(is.at) <= durationOf(lease) {
			renewing++
		}
		h.seen[name] = is
	}
	return 2*renewing >= len(names)
}

// leaseOf reads a Node's Lease; nil where there is none.
func (h *heartbeats) leaseOf(ctx context.Context, node string) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := h.leases.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node}, lease)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the Lease of Node %s: %w", node, err)
	}
	return lease, nil
}

// renewedAt is when the kubelet says it renewed the Lease; zero where it never has.
func renewedAt(lease *coordinationv1.Lease) time.Time {
	if lease == nil || lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}

// durationOf is for how long a renewal is good.
func durationOf(lease *coordinationv1.Lease) time.Duration {
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return leaseDuration
}
