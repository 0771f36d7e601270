package machinedeployment

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/earliest"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/rollout"
	"github.com/millwright-dev/millwright/core/surge"
)

type reconciler struct {
	client   client.Client
	machines ownership.Machines
	live     client.Reader
	clock    clock.PassiveClock
	// accounts are shared with the controller of MachineSets.
	accounts *surge.Accounts
	// foreigners knows what another system works on.
	foreigners coexistence.Reader
	debounce   requeue.Debounce
	// started is when this process began to look at deployments: the time of the first call.
	started func() time.Time
	// reported is when the status of each deployment was last written, by its name.
	reported sync.Map
	recorder recorder
}

// Reconcile brings one deployment a step further. Before it plans, it sees to it that the
// deployment has a size and the sets that it selects. From its first look to its last write it
// holds the deployment's account, so that no set takes meanwhile what the plan counts on.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	md := &clusterv1alpha1.MachineDeployment{}
	if err := r.client.Get(ctx, req.NamespacedName, md); err != nil {
		r.reported.Delete(req.NamespacedName)
		r.debounce.Forget(req.NamespacedName)
		r.accounts.Forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !md.DeletionTimestamp.IsZero() {
		// The garbage collector deletes its sets and their Machines.
		return ctrl.Result{}, nil
	}
	account := r.accounts.Lock(req.NamespacedName, md.UID)
	defer account.Unlock()
	sets, err := r.listSets(ctx, md, ownership.Index, string(md.UID))
	if err != nil {
		return ctrl.Result{}, err
	}
	otherSystem, err := r.foreigners.WhyDeployment(ctx, md)
	if err != nil {
		return ctrl.Result{}, err
	}
	if otherSystem != "" {
		return coexistence.LeaveAlone(ctx, r.client, md, otherSystem)
	}
	if !annotations.IsPaused(md) {
		if isDone, result, err := r.prepare(ctx, md, sets); isDone || err != nil {
			return result, err
		}
	}
	o, err := r.observe(ctx, md, sets, account)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.apply(ctx, o, newPlan(o))
}

// prepare adopts and releases sets, deletes those of an earlier deployment, and gives the
// deployment a size. The result isDone says that there was any of that to do, or that the
// deployment has to rest. Then no more is done this time.
func (r *reconciler) prepare(
	ctx context.Context, md *clusterv1alpha1.MachineDeployment, sets []clusterv1alpha1.MachineSet,
) (isDone bool, result ctrl.Result, err error) {
	changes, err := r.readOwnerChanges(ctx, md, sets)
	if err != nil {
		return false, result, err
	}
	leftovers, err := r.readLeftovers(ctx, md)
	if err != nil {
		return false, result, err
	}
	if len(changes)+len(leftovers) > 0 {
		// The cache shows in a moment which sets are the deployment's. Without an adopted one
		// another might be made in its place.
		err := ownership.WriteChanges(ctx, r.client, r.live, changes)
		if err == nil {
			err = r.deleteLeftovers(ctx, md, leftovers)
		}
		result, err := requeue.Result(requeue.Soon, err)
		return true, result, err
	}
	if md.Spec.Replicas == nil {
		return true, result, r.writeSize(ctx, md, rollout.InitialSize(md, sets))
	}
	result.RequeueAfter = r.debounce.Wait(md, r.clock.Now())
	return result.RequeueAfter > 0, result, nil
}

// listSets returns the sets of the deployment's namespace that have that key in an index. They are
// the cache's own: for reading only.
func (r *reconciler) listSets(
	ctx context.Context, md *clusterv1alpha1.MachineDeployment, index, key string,
) ([]clusterv1alpha1.MachineSet, error) {
	sets := &clusterv1alpha1.MachineSetList{}
	err := r.client.List(ctx, sets, client.InNamespace(md.Namespace), client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list MachineSets: %w", err)
	}
	return sets.Items, nil
}

// readOwnerChanges reads which sets the deployment has to release or to adopt, but for those that
// another system works on.
func (r *reconciler) readOwnerChanges(
	ctx context.Context, md *clusterv1alpha1.MachineDeployment, sets []clusterv1alpha1.MachineSet,
) ([]ownership.Change, error) {
	owner, err := ownership.OwnerOf(md)
	if err != nil {
		return nil, err
	}
	var changes []ownership.Change
	for i := range sets {
		if owner.ActionFor(&sets[i]) == ownership.Release {
			changes = append(changes, ownership.Change{Owner: owner, Object: &sets[i], Action: ownership.Release})
		}
	}
	ownerless, err := r.listSets(ctx, md, ownership.Index, ownership.NoOwner)
	if err != nil {
		return nil, err
	}
	for i := range ownerless {
		if owner.ActionFor(&ownerless[i]) != ownership.Adopt {
			continue
		}
		why, err := r.foreigners.WhySet(ctx, &ownerless[i])
		if err != nil {
			return nil, err
		}
		if why == "" {
			changes = append(changes, ownership.Change{Owner: owner, Object: &ownerless[i], Action: ownership.Adopt})
		}
	}
	return changes, nil
}

// writeSize gives the deployment a size. A conflict is no error: an event follows.
func (r *reconciler) writeSize(ctx context.Context, md *clusterv1alpha1.MachineDeployment, replicas int32) error {
	patch := client.MergeFromWithOptions(md.DeepCopy(), client.MergeFromWithOptimisticLock{})
	md.Spec.Replicas = &replicas
	if err := r.client.Patch(ctx, md, patch); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("write the default of spec.replicas: %w", err)
	}
	return nil
}

// observation is a deployment, its sets and their Machines.
type observation struct {
	md  *clusterv1alpha1.MachineDeployment
	now time.Time
	// started is when this process began to look at deployments; reported is when it last wrote
	// this one's status.
	started, reported time.Time
	// account is locked.
	account *surge.Account
	// sets are the deployment's, from the cache. They are the cache's own: for reading only.
	sets []clusterv1alpha1.MachineSet
	// paused: nobody wants the deployment's sets to be touched.
	paused bool
	// template is the deployment's.
	template rollout.Template
	// current is the set of that template; nil if there is none.
	current *clusterv1alpha1.MachineSet
	// state is what package rollout plans on.
	state rollout.State
	// counts are what the status shows.
	counts counts
	// next is in how long something changes of itself: a Machine becomes available, or
	// spec.rolloutAfter comes. 0 if nothing does.
	next time.Duration
}

type counts struct{ present, updated, ready, available int32 }

// observe looks at the deployment's sets and their Machines.
func (r *reconciler) observe(
	ctx context.Context, md *clusterv1alpha1.MachineDeployment, sets []clusterv1alpha1.MachineSet, account *surge.Account,
) (*observation, error) {
	o := &observation{
		md: md, account: account, now: r.clock.Now(), started: r.started(), sets: sets, paused: annotations.IsPaused(md),
	}
	if at, ok := r.reported.Load(client.ObjectKeyFromObject(md)); ok {
		o.reported, _ = at.(time.Time)
	}
	var err error
	if o.template, o.next, err = rollout.TemplateOf(md, o.now); err != nil {
		return nil, err
	}
	if o.current, err = o.template.Find(sets); err != nil {
		return nil, err
	}
	o.state = rollout.StateOf(md)
	account.SetMost(int(o.maxReplicas()))
	for i := range sets {
		set, err := r.observeSet(ctx, o, &sets[i])
		if err != nil {
			return nil, err
		}
		o.state.Sets = append(o.state.Sets, set)
	}
	if !o.paused {
		r.debounce.Record(md, int(o.counts.present), o.now)
	}
	return o, nil
}

// observeSet returns what package rollout looks at of a set, and counts its Machines.
func (r *reconciler) observeSet(ctx context.Context, o *observation, set *clusterv1alpha1.MachineSet) (rollout.Set, error) {
	machines, err := r.machines.Of(ctx, set.Namespace, string(set.UID))
	if err != nil {
		return rollout.Set{}, err
	}
	s := rollout.SetOf(set)
	s.New, s.Machines = set == o.current, make([]rollout.Machine, 0, len(machines))
	if !s.New && o.isGrowing(set, s.Desired) {
		s.Observed = false
		o.next = earliest.Delay(o.next, surge.Expiry)
	}
	minReady := time.Duration(o.md.Spec.MinReadySeconds) * time.Second
	for _, m := range machines {
		available, left := health.IsAvailable(m, minReady, o.now)
		o.next = earliest.Delay(o.next, left)
		o.counts.add(m, s.New, available)
		if m.DeletionTimestamp.IsZero() {
			s.Machines = append(s.Machines, rollout.Machine{Available: available, Marked: annotations.IsMarkedForDeletion(m)})
		}
	}
	unseen, left := o.account.UnseenMachines(set.UID, machines)
	s.Present = int32(len(machines) + unseen)
	o.next = earliest.Delay(o.next, left)
	return s, nil
}

// isGrowing says whether the set of an earlier template was given a larger size that it does not
// show. The cache shows it in a moment, unless the answer was lost. Then nobody can tell whether
// the set grows, until such a request can no longer be under way.
func (o *observation) isGrowing(set *clusterv1alpha1.MachineSet, shown int32) bool {
	size, ok := o.account.UnseenSize(set.Name, set.ResourceVersion)
	return ok && size.Replicas > int(shown)
}

func (c *counts) add(m *clusterv1alpha1.Machine, updated, available bool) {
	c.present++
	if updated {
		c.updated++
	}
	if health.IsReady(m) {
		c.ready++
	}
	if available {
		c.available++
	}
}
