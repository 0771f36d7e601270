package machineset

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/machinepages"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/scale"
)

const (
	// lookUpAfter is how long the cache may take to show what this process did before the API
	// server is asked.
	lookUpAfter = 10 * time.Second
	// settleAfter is when a request whose answer was lost can no longer be under way. API servers
	// give up after 60 s.
	settleAfter = 2 * time.Minute
	// large is from how many Machines on a list of them is worth a moment's waiting.
	large = 100
)

// confirm asks the API server where the cache may be behind, and a decision needs more than that:
//   - before this process creates its first Machine for the set;
//   - when a request whose answer was lost can no longer be under way;
//   - when the cache has not shown for long what this process did;
//   - before Machines are deleted.
func (r *reconciler) confirm(ctx context.Context, o *observation) error {
	mem := o.memory
	lost := mem.names.LostSince()
	isLostForLong := !lost.IsZero() && o.now.Sub(lost) >= settleAfter
	if mem.needsConfirmation && !o.paused && scale.Decide(o.state).Create > 0 || isLostForLong {
		if err := r.confirmMachines(ctx, o); err != nil {
			return err
		}
		o.refresh()
	}
	if mem.hasWaitedForCache(lookUpAfter, o.now) {
		if err := r.lookUpUnseen(ctx, o); err != nil {
			return err
		}
		mem.unseenSince = o.now
		o.refresh()
	}
	if !o.paused && len(scale.Decide(o.state).Delete) > 0 {
		o.confirmed, o.confirmErr = r.confirmState(ctx, o)
	}
	return nil
}

// confirmMachines asks the API server which Machines there are, and whether the set is still as the
// cache shows it.
func (r *reconciler) confirmMachines(ctx context.Context, o *observation) error {
	cached := map[string]bool{}
	for i := range o.cached {
		cached[o.cached[i].UID] = true
	}
	err := r.eachLive(ctx, o, func(page []*clusterv1alpha1.Machine) {
		for _, listed := range page {
			m := health.MachineOf(listed)
			o.memory.names.MarkCreated(m.Name)
			if !cached[m.UID] {
				o.memory.pending.AddCreated(m)
			}
		}
	})
	if err != nil {
		return err
	}
	o.memory.names.GiveUpLost(r.clock.Now().Add(-settleAfter))
	o.memory.needsConfirmation = false
	return nil
}

// confirmSet fails with requeue.ErrStale if the set is not the one in the cache any more.
func (r *reconciler) confirmSet(ctx context.Context, o *observation) error {
	set := &clusterv1alpha1.MachineSet{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(o.set), set); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look up the MachineSet: %w", err)
	}
	if set.UID != o.set.UID || set.Generation != o.set.Generation || !set.DeletionTimestamp.IsZero() {
		return requeue.ErrStale
	}
	o.memory.names.Raise(set.Status.NextIndex)
	return nil
}

// confirmState returns what is known of the set's Machines no earlier than its last change: whoever
// lowered its size may have marked Machines just before.
//
// The cache knows enough if it has shown a Machine that was written after that change, since it
// shows writes in their order. In a rollout that takes a moment, and spares a list of all Machines
// for each few that go. A large set waits for that moment, once.
func (r *reconciler) confirmState(ctx context.Context, o *observation) (scale.State, error) {
	mem, generation := o.memory, o.set.Generation
	if mem.shows(o.seen, generation) {
		return o.state, r.confirmSet(ctx, o)
	}
	if len(o.machines) >= large && mem.listedGeneration != generation {
		// The version of the whole list comes with any part of it.
		some := &clusterv1alpha1.MachineList{}
		if err := r.live.List(ctx, some, client.InNamespace(o.set.Namespace), client.Limit(1)); err != nil {
			return scale.State{}, fmt.Errorf("ask how far the Machines are: %w", err)
		}
		mem.listedVersion, mem.listedGeneration = some.ResourceVersion, generation
		return scale.State{}, requeue.ErrStale
	}
	confirmed := o.state
	confirmed.Machines = nil
	err := r.eachLive(ctx, o, func(page []*clusterv1alpha1.Machine) {
		counted, _ := r.count(o, page)
		confirmed.Machines = append(confirmed.Machines, counted...)
	})
	if err != nil {
		return scale.State{}, err // nothing is decided on some of the pages
	}
	return confirmed, nil
}

// eachLive calls each with the set's Machines as the API server has them now, a page at a time. It
// fails with requeue.ErrStale if the set itself is not the one in the cache any more.
func (r *reconciler) eachLive(ctx context.Context, o *observation, each func(page []*clusterv1alpha1.Machine)) error {
	if err := r.confirmSet(ctx, o); err != nil {
		return err
	}
	selector, err := o.set.Spec.Selector.AsSelector()
	if err != nil {
		return fmt.Errorf("spec.selector: %w", err)
	}
	version, err := machinepages.Each(ctx, r.live, func(page []clusterv1alpha1.Machine) {
		var own []*clusterv1alpha1.Machine
		for i := range page {
			if metav1.IsControlledBy(&page[i], o.set) {
				own = append(own, &page[i])
			}
		}
		each(own)
	}, client.InNamespace(o.set.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return err
	}
	o.memory.listedVersion, o.memory.listedGeneration = version, o.set.Generation
	return nil
}

// lookUpUnseen asks the API server about the Machines that the cache should have shown by now. The
// cache never shows one that was gone before it came so far.
func (r *reconciler) lookUpUnseen(ctx context.Context, o *observation) error {
	for _, unseen := range o.memory.pending.Unseen() {
		m := &clusterv1alpha1.Machine{}
		err := r.live.Get(ctx, client.ObjectKey{Namespace: o.set.Namespace, Name: unseen.Name}, m)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("look up Machine %s: %w", unseen.Name, err)
		}
		if apierrors.IsNotFound(err) || string(m.UID) != unseen.UID || !metav1.IsControlledBy(m, o.set) {
			o.memory.pending.Remove(unseen.UID)
		}
	}
	return nil
}
