package simkubelet

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-dev/millwright/localcluster"
)

// wheelSlots spread the renewals evenly over the interval, whatever the moments of registration
// were.
const wheelSlots = 64

// leaseWheel holds the kubelets whose Leases are renewed, each in the slot that its Node's name
// says. A kubelet's first Lease is written when its slot's turn comes, within the interval: until
// then the Node's own condition says it is alive.
type leaseWheel struct {
	duration time.Duration
	mu       *sync.Mutex
	slots    []map[*kubelet]struct{}
	// until is until when Nodes are looked at, in Unix nanoseconds.
	until *atomic.Int64
}

func newLeaseWheel(duration time.Duration) leaseWheel {
	w := leaseWheel{duration: duration, mu: &sync.Mutex{}, until: &atomic.Int64{}, slots: make([]map[*kubelet]struct{}, wheelSlots)}
	for i := range w.slots {
		w.slots[i] = map[*kubelet]struct{}{}
	}
	return w
}

// tick is the time between two slots: a turn of the wheel takes a quarter of a Lease's duration, as
// with a real kubelet.
func (w leaseWheel) tick() time.Duration { return w.duration / 4 / wheelSlots }

// doubt has all kubelets look at their Nodes for a while, and doubted says whether they do.
func (w leaseWheel) doubt(now time.Time)        { w.until.Store(now.Add(doubtTime).UnixNano()) }
func (w leaseWheel) doubted(now time.Time) bool { return now.UnixNano() < w.until.Load() }

func (w leaseWheel) slotOf(k *kubelet) map[*kubelet]struct{} {
	h := fnv.New32a()
	_, _ = h.Write([]byte(k.node.name)) // Never fails.
	return w.slots[h.Sum32()%wheelSlots]
}

func (w leaseWheel) add(k *kubelet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slotOf(k)[k] = struct{}{}
}

// remove takes a kubelet out; nil and one that is not in do nothing.
func (w leaseWheel) remove(k *kubelet) {
	if k == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.slotOf(k), k)
}

// due returns the kubelets of a slot whose Leases are not being renewed already. Each of them is
// renewing until done is called with it.
func (w leaseWheel) due(slot int) []*kubelet {
	w.mu.Lock()
	defer w.mu.Unlock()
	kubelets := make([]*kubelet, 0, len(w.slots[slot]))
	for k := range w.slots[slot] {
		if !k.renewing {
			k.renewing = true
			kubelets = append(kubelets, k)
		}
	}
	return kubelets
}

func (w leaseWheel) done(k *kubelet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k.renewing = false
}

// renewLeases turns the wheel until ctx ends. It waits for no renewal: a Lease whose renewal takes
// longer than a turn is passed over by the next one.
func (f *Fleet) renewLeases(ctx context.Context) {
	ticker := time.NewTicker(f.leases.tick())
	defer ticker.Stop()
	room := make(chan struct{}, f.options.Workers)
	var slots sync.WaitGroup
	defer slots.Wait()
	for slot := 0; ; slot = (slot + 1) % wheelSlots {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if kubelets := f.leases.due(slot); len(kubelets) > 0 {
				slots.Go(func() { f.renewSlot(ctx, kubelets, room) })
			}
		}
	}
}

// renewSlot renews some Leases, as many at once as there is room for, and logs failures together:
// they tend to have one cause.
func (f *Fleet) renewSlot(ctx context.Context, kubelets []*kubelet, room chan struct{}) {
	var wg sync.WaitGroup
	errs := make(chan error, len(kubelets))
	for _, k := range kubelets {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			defer f.leases.done(k)
			if err := f.renew(ctx, k); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	if len(errs) > 0 && ctx.Err() == nil {
		f.leases.doubt(time.Now())
		f.options.Log.Warn("Leases were not renewed", "count", len(errs), "first", <-errs)
	}
}

// A real kubelet looks every ten seconds whether its Node is what it reports. Here that is done for
// as long as a Node may become Unknown though its Lease is renewed: after an outage of the API
// server node-lifecycle sees Leases again later than Nodes.
const (
	doubtTime   = 2 * time.Minute
	lookAtNodes = 10 * time.Second
)

// renew renews one Lease. A kubelet whose Node is gone stops trying.
func (f *Fleet) renew(ctx context.Context, k *kubelet) error {
	now := time.Now()
	late := now.Sub(k.renewed) > f.leases.duration
	if late {
		f.leases.doubt(now)
	}
	if late || f.leases.doubted(now) && now.Sub(k.looked) >= lookAtNodes {
		if err := f.reportReady(ctx, k.node, now); err != nil {
			return err
		}
		k.looked = now
	}
	err := f.writeLease(ctx, k, now)
	if err == nil {
		k.renewed = now
		return nil
	}
	// A Lease that is gone answers with a conflict as well: its uid, which an update carries, is
	// not there any more.
	if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	k.lease = nil // The next turn takes it afresh.
	node, err := f.client.CoreV1().Nodes().Get(ctx, k.node.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && node.UID != k.node.uid {
		f.leases.remove(k)
		f.options.Log.Info("Node was deleted; its kubelet goes silent", "node", k.node.name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for the Lease's Node: %w", err)
	}
	return nil
}

// reportReady makes a Node Ready that has become Unknown, since nothing was heard of its kubelet
// for so long: a Lease alone does not. It leaves the Node of a VM that has stopped meanwhile as it
// is.
func (f *Fleet) reportReady(ctx context.Context, ref nodeRef, now time.Time) error {
	node, err := f.client.CoreV1().Nodes().Get(ctx, ref.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (node.UID != ref.uid || node.Labels[localcluster.KubeletLabel] == "" || kubeletRuns(node)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look whether the Node is Ready: %w", err)
	}
	ref.version = node.ResourceVersion
	if _, err := f.patch(ctx, ref, true, readyConditions(now)); err != nil {
		return fmt.Errorf("report Node Ready again: %w", err)
	}
	return nil
}

// writeLease renews the Lease that was written last, or takes one: a new one, or the one that is
// there. It goes with the Node, by garbage collection.
func (f *Fleet) writeLease(ctx context.Context, k *kubelet, now time.Time) error {
	leases := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	if k.lease == nil {
		lease, err := leases.Create(ctx, newLease(k.node, f.leases.duration), metav1.CreateOptions{})
		if err == nil {
			k.lease = lease
			return nil
		}
		if apierrors.IsAlreadyExists(err) {
			lease, err = leases.Get(ctx, k.node.name, metav1.GetOptions{})
		}
		if err != nil {
			return fmt.Errorf("take Lease: %w", err)
		}
		k.lease = lease
	}
	next := k.lease.DeepCopy()
	next.Spec.RenewTime = &metav1.MicroTime{Time: now}
	updated, err := leases.Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("renew Lease: %w", err)
	}
	k.lease = updated
	return nil
}

func newLease(node nodeRef, duration time.Duration) *coordinationv1.Lease {
	seconds := int32(max(1, duration/time.Second))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:      node.name,
			Namespace: corev1.NamespaceNodeLease,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: node.name, UID: node.uid,
			}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &node.name,
			LeaseDurationSeconds: &seconds,
			RenewTime:            &metav1.MicroTime{Time: time.Now()},
		},
	}
}
