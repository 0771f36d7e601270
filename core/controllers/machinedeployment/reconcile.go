package machinedeployment

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/machinetemplate"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/rollout"
	"github.com/millwright-dev/millwright/core/surge"
)

type reconciler struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	// accounts are shared with the controller of MachineSets.
	accounts *surge.Accounts
	// foreigners knows what another system works on.
	foreigners coexistence.Reader
	debounce   requeue.Debounce
	memory     memory
	recorder   *recorder
}

// Reconcile brings one deployment a step further. From its first look to its last write it holds
// the deployment's account, so that no set takes meanwhile what the plan counts on.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	md := &clusterv1alpha1.MachineDeployment{}
	if err := r.client.Get(ctx, req.NamespacedName, md); err != nil {
		r.memory.forget(req.NamespacedName)
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
	o, err := r.observe(ctx, md, account)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.apply(ctx, o, newPlan(o))
}

// observation is a deployment, its sets and their Machines. Fields that follow a reason to do
// nothing are not filled in where that reason is there.
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
	// otherSystem says why another system works on the deployment; empty if none does.
	otherSystem string
	// paused: nobody wants the deployment's sets to be touched.
	paused bool
	// ownerChanges are the sets that the deployment has to adopt or to release; leftovers those of
	// an earlier deployment of its name.
	ownerChanges []ownership.Change
	leftovers    []clusterv1alpha1.MachineSet
	// rest is how long the deployment has to rest before it is looked at again.
	rest time.Duration

	// template is the deployment's, in the form in which templates are compared.
	template []byte
	// current is the set of that template; nil if there is none.
	current *clusterv1alpha1.MachineSet
	// state is what package rollout plans on.
	state rollout.State
	// counts are what the status shows.
	counts counts
	// rolloutAfter is spec.rolloutAfter if that has passed: a set that was made before it is old.
	rolloutAfter *metav1.Time
	// next is in how long something changes of itself: a Machine becomes available, or
	// spec.rolloutAfter comes. 0 if nothing does.
	next time.Duration
}

type counts struct{ present, updated, ready, available int32 }

// lacksSize says whether the deployment has no size and needs one.
func (o *observation) lacksSize() bool { return o.md.Spec.Replicas == nil && !o.paused }

// observe looks at the deployment's sets and their Machines.
func (r *reconciler) observe(ctx context.Context, md *clusterv1alpha1.MachineDeployment, account *surge.Account) (*observation, error) {
	o := &observation{md: md, account: account, now: r.clock.Now(), paused: annotations.IsPaused(md)}
	o.started, o.reported = r.memory.of(md, o.now)
	if err := r.readSets(ctx, o); err != nil || o.otherSystem != "" {
		return o, err
	}
	if !o.paused {
		if err := r.readOwnerChanges(ctx, o); err != nil || len(o.ownerChanges)+len(o.leftovers) > 0 || o.lacksSize() {
			return o, err
		}
		if o.rest = r.debounce.Wait(md, o.now); o.rest > 0 {
			return o, nil
		}
	}
	if err := o.findCurrent(); err != nil {
		return nil, err
	}
	o.state = rollout.State{
		Replicas: ptr.Deref(md.Spec.Replicas, 0), Strategy: md.Spec.Strategy.Type, Limits: limits(md), Paused: md.Spec.Paused,
		HistoryLimit: ptr.Deref(md.Spec.RevisionHistoryLimit, 1),
	}
	for i := range o.sets {
		set, err := r.observeSet(ctx, o, &o.sets[i])
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

// readSets reads the deployment's sets, and whether another system works on any of all that.
func (r *reconciler) readSets(ctx context.Context, o *observation) error {
	var err error
	if o.sets, err = r.listSets(ctx, o, ownership.Index, string(o.md.UID)); err != nil {
		return err
	}
	o.otherSystem, err = r.foreigners.WhyDeployment(ctx, o.md)
	return err
}

// readOwnerChanges reads which sets the deployment has to release or to adopt, and those of an
// earlier deployment of its name. It leaves out what another system works on.
//
// Kubernetes' garbage collector deletes the sets of an earlier deployment, unless the deployment
// was deleted and made again while its watch was interrupted: then it takes the new one for the
// old, and the sets and their VMs would stay for ever
// (https://github.com/kubernetes/kubernetes/pull/133565 has the cause).
func (r *reconciler) readOwnerChanges(ctx context.Context, o *observation) error {
	selector, err := o.md.Spec.Selector.AsSelector()
	if err != nil {
		return reconcile.TerminalError(fmt.Errorf("spec.selector: %w", err))
	}
	owner := ownership.Owner{Object: o.md, Kind: deploymentKind, Selector: selector}
	for i := range o.sets {
		if owner.ActionFor(&o.sets[i]) == ownership.Release {
			o.ownerChanges = append(o.ownerChanges, ownership.Change{Owner: owner, Object: &o.sets[i], Action: ownership.Release})
		}
	}
	ownerless, err := r.listSets(ctx, o, ownership.Index, ownership.NoOwner)
	if err != nil {
		return err
	}
	for i := range ownerless {
		if owner.ActionFor(&ownerless[i]) != ownership.Adopt {
			continue
		}
		why, err := r.foreigners.WhySet(ctx, &ownerless[i])
		if err != nil {
			return err
		}
		if why == "" {
			o.ownerChanges = append(o.ownerChanges, ownership.Change{Owner: owner, Object: &ownerless[i], Action: ownership.Adopt})
		}
	}
	namesakes, err := r.listSets(ctx, o, ownerNameIndex, o.md.Name)
	if err != nil {
		return err
	}
	for i := range namesakes {
		set := &namesakes[i]
		if metav1.IsControlledBy(set, o.md) || !set.DeletionTimestamp.IsZero() {
			continue
		}
		why, err := r.foreigners.WhySet(ctx, set)
		if err != nil {
			return err
		}
		if why == "" {
			o.leftovers = append(o.leftovers, *set)
		}
	}
	return nil
}

// listSets returns the sets of the deployment's namespace that have that key in an index. They are
// the cache's own: for reading only.
func (r *reconciler) listSets(ctx context.Context, o *observation, index, key string) ([]clusterv1alpha1.MachineSet, error) {
	sets := &clusterv1alpha1.MachineSetList{}
	err := r.client.List(ctx, sets, client.InNamespace(o.md.Namespace), client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list MachineSets: %w", err)
	}
	return sets.Items, nil
}

// findCurrent finds the set whose Machines are as the deployment's are to be. Of several it is the
// one of the highest revision.
func (o *observation) findCurrent() error {
	var err error
	if o.template, err = machinetemplate.Canonical(&o.md.Spec.Template); err != nil {
		return fmt.Errorf("read the template: %w", err)
	}
	if after := o.md.Spec.RolloutAfter; after != nil {
		if o.next = max(after.Sub(o.now), 0); o.next == 0 {
			o.rolloutAfter = after
		}
	}
	for i := range o.sets {
		set := &o.sets[i]
		isCurrent, err := o.isCurrent(set)
		if err != nil {
			return err
		}
		if isCurrent && (o.current == nil || revisionOf(set) > revisionOf(o.current)) {
			o.current = set
		}
	}
	return nil
}

// isCurrent says whether the set's Machines are as the deployment's are to be: made from its
// template, and, once rolloutAfter has passed, not before that. Templates are compared by what they
// say, not by a hash: a new field with a default, or another way to hash, must not replace
// machines.
func (o *observation) isCurrent(set *clusterv1alpha1.MachineSet) (bool, error) {
	canonical, err := machinetemplate.Canonical(&set.Spec.Template)
	if err != nil {
		return false, fmt.Errorf("read the template of %s: %w", set.Name, err)
	}
	return bytes.Equal(canonical, o.template) && (o.rolloutAfter == nil || isMadeSince(set, o.rolloutAfter)), nil
}

// isMadeSince says whether the set was made at that time or later. A set that was made because of
// the time says so in an annotation: the API server's clock, which stamps the set, may be another
// than ours. Its stamps are rounded down to the second. So a set that was stamped in that very
// second and does not say so may be older.
func isMadeSince(set *clusterv1alpha1.MachineSet, after *metav1.Time) bool {
	noted, err := time.Parse(time.RFC3339, set.Annotations[clusterv1alpha1.RolloutAfterAnnotation])
	if err == nil && !noted.Before(after.Time) {
		return true
	}
	return set.CreationTimestamp.After(after.Time)
}

// observeSet returns what package rollout looks at of a set, and counts its Machines.
func (r *reconciler) observeSet(ctx context.Context, o *observation, set *clusterv1alpha1.MachineSet) (rollout.Set, error) {
	machines := &clusterv1alpha1.MachineList{}
	// The objects are the cache's own: they are only read.
	if err := r.client.List(ctx, machines, client.InNamespace(set.Namespace),
		client.MatchingFields{ownership.Index: string(set.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return rollout.Set{}, fmt.Errorf("list Machines of %s: %w", set.Name, err)
	}
	s := rollout.Set{
		Name:     set.Name,
		New:      set == o.current,
		Revision: revisionOf(set),
		Desired:  ptr.Deref(set.Spec.Replicas, 0),
		// The set's controller reads the same cache. It reports that it has seen a spec only once
		// the cache shows what it did.
		Observed: set.Status.ObservedGeneration >= set.Generation && set.Spec.Replicas != nil && set.DeletionTimestamp.IsZero(),
		Machines: make([]rollout.Machine, 0, len(machines.Items)),
		Part:     rollout.Part(set.Annotations[clusterv1alpha1.RolloutAnnotation]),
	}
	s.PlannedFor, _ = plannedSize(set)
	if !s.New && o.isGrowing(set, s.Desired) {
		s.Observed = false
		o.next = requeue.Earlier(o.next, surge.Expiry)
	}
	minReady := time.Duration(o.md.Spec.MinReadySeconds) * time.Second
	for i := range machines.Items {
		m := &machines.Items[i]
		available, left := health.IsAvailable(m, minReady, o.now)
		o.next = requeue.Earlier(o.next, left)
		o.counts.add(m, s.New, available)
		if m.DeletionTimestamp.IsZero() {
			s.Machines = append(s.Machines, rollout.Machine{Available: available, Marked: annotations.IsMarkedForDeletion(m)})
		}
	}
	unseen, left := o.account.UnseenMachines(set.UID, machines.Items)
	s.Present = int32(len(machines.Items) + unseen)
	o.next = requeue.Earlier(o.next, left)
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

// memory is what this process knows of deployments and nobody else does. It is safe for concurrent
// use. The zero value is empty.
type memory struct {
	mu       sync.Mutex
	started  time.Time
	reported map[types.NamespacedName]time.Time
}

// of returns when this process began to look at deployments, and when it last wrote the status of
// this one; zero if it has not.
func (m *memory) of(md *clusterv1alpha1.MachineDeployment, now time.Time) (started, reported time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started.IsZero() {
		m.started, m.reported = now, map[types.NamespacedName]time.Time{}
	}
	return m.started, m.reported[client.ObjectKeyFromObject(md)]
}

// recordReport records that a status was written now.
func (m *memory) recordReport(md *clusterv1alpha1.MachineDeployment, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reported[client.ObjectKeyFromObject(md)] = now
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.reported, key)
}
