package bench

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// tally counts Machines by a watch of its own. A watch delivers every change of one kind in the
// order in which they happened, so that no dip and no peak is missed.
type tally struct {
	mu       sync.Mutex
	changed  chan struct{}
	machines map[string]machine
	counts   counts
	most     int
	least    int
	failed   error
}

// machine is as much of a Machine as is counted.
type machine struct {
	kubelet   string
	available bool
}

// counts are the Machines at an instant.
type counts struct {
	// present are all, those being deleted included; available those that are Ready and stay.
	present, available int
	// byKubelet are the available ones by their template's version.
	byKubelet map[string]int
}

func newTally() *tally {
	return &tally{changed: make(chan struct{}), machines: map[string]machine{}, counts: counts{byKubelet: map[string]int{}}}
}

// follow counts until ctx ends. There must not be a Machine yet.
func (t *tally) follow(ctx context.Context, c client.WithWatch) error {
	list := &clusterv1alpha1.MachineList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	start := func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return c.Watch(ctx, &clusterv1alpha1.MachineList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &o})
	}
	changes, err := toolswatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &toolscache.ListWatch{WatchFuncWithContext: start})
	if err != nil {
		return fmt.Errorf("watch Machines: %w", err)
	}
	go func() {
		defer changes.Stop()
		for change := range changes.ResultChan() {
			t.saw(change)
		}
	}()
	return nil
}

func (t *tally) saw(change watch.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch m, ok := change.Object.(*clusterv1alpha1.Machine); {
	case ok && change.Type == watch.Deleted:
		t.count(m.Name, -1)
		delete(t.machines, m.Name)
	case ok && (change.Type == watch.Added || change.Type == watch.Modified):
		t.count(m.Name, -1)
		t.machines[m.Name] = machine{kubelet: m.Spec.Versions.Kubelet, available: available(m)}
		t.count(m.Name, 1)
	case change.Type == watch.Error:
		t.failed = fmt.Errorf("the watch on Machines ended, and what it would have shown is lost: %v", change.Object)
	}
	t.most, t.least = max(t.most, t.counts.present), min(t.least, t.counts.available)
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *tally) count(name string, by int) {
	m, known := t.machines[name]
	if !known {
		return
	}
	t.counts.present += by
	if m.available {
		t.counts.available += by
		t.counts.byKubelet[m.kubelet] += by
	}
}

func available(m *clusterv1alpha1.Machine) bool {
	return m.DeletionTimestamp.IsZero() && meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1alpha1.ConditionReady)
}

// begin forgets the extremes of before.
func (t *tally) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.most, t.least = t.counts.present, t.counts.available
}

// extremes are the most Machines that were there since begin, and the fewest that were available.
func (t *tally) extremes() (most, least int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.most, t.least
}

// await returns when done says so.
func (t *tally) await(ctx context.Context, done func(counts) bool) error {
	for {
		t.mu.Lock()
		reached, changed, failed, now := done(t.counts), t.changed, t.failed, t.counts
		t.mu.Unlock()
		if reached || failed != nil {
			return failed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("with %d Machines, %d of them available: %w", now.present, now.available, context.Cause(ctx))
		}
	}
}
