package machinedeployment

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/machinetemplate"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/rollout"
	"github.com/millwright-dev/millwright/core/surge"
)

// observation is a deployment, its sets and their Machines.
type observation struct {
	md   *clusterv1alpha1.MachineDeployment
	sets []clusterv1alpha1.MachineSet
	// room is the deployment's, of use while nobody else is in it.
	room *surge.Account
	// template is the deployment's, in the form in which templates are compared.
	template []byte
	// fresh is the set of that template; nil if there is none.
	fresh *clusterv1alpha1.MachineSet
	// state is what package rollout plans on.
	state rollout.State
	// counts are what the status shows.
	counts counts
	// since is spec.rolloutAfter if that has passed: a set that was made before it is old.
	since *metav1.Time
	// next is in how long something changes of itself: a Machine becomes available, or rolloutAfter
	// comes. 0 if nothing does.
	next time.Duration
}

type counts struct{ present, updated, ready, available int32 }

func (r *reconciler) observe(ctx context.Context, md *clusterv1alpha1.MachineDeployment, sets []clusterv1alpha1.MachineSet, room *surge.Account) (*observation, error) {
	template, err := machinetemplate.Canonical(&md.Spec.Template)
	if err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	o := &observation{md: md, sets: sets, room: room, template: template}
	if after := md.Spec.RolloutAfter; after != nil {
		if o.next = max(after.Sub(r.clock.Now()), 0); o.next == 0 {
			o.since = after
		}
	}
	for i := range sets {
		set := &sets[i]
		isCurrent, err := o.isCurrent(set)
		if err != nil {
			return nil, err
		}
		if isCurrent && (o.fresh == nil || revisionOf(set) > revisionOf(o.fresh)) {
			o.fresh = set
		}
	}
	o.state = rollout.State{
		Replicas: ptr.Deref(md.Spec.Replicas, 0), Strategy: md.Spec.Strategy.Type, Limits: limits(md), Paused: md.Spec.Paused,
		HistoryLimit: 1,
	}
	if md.Spec.RevisionHistoryLimit != nil {
		o.state.HistoryLimit = *md.Spec.RevisionHistoryLimit
	}
	for i := range sets {
		set, err := r.observeSet(ctx, o, &sets[i])
		if err != nil {
			return nil, err
		}
		o.state.Sets = append(o.state.Sets, set)
	}
	return o, nil
}

func (r *reconciler) observeSet(ctx context.Context, o *observation, set *clusterv1alpha1.MachineSet) (rollout.Set, error) {
	s := rollout.Set{
		Name:     set.Name,
		New:      set == o.fresh,
		Revision: revisionOf(set),
		// The set's controller reports what it has seen only once the cache, which it shares with
		// us, shows what it did.
		Observed: set.Status.ObservedGeneration >= set.Generation && set.Spec.Replicas != nil && set.DeletionTimestamp.IsZero(),
	}
	if set.Spec.Replicas != nil {
		s.Desired = *set.Spec.Replicas
	}
	if set != o.fresh && o.isGrowing(set, s.Desired) {
		s.Observed = false
		o.next = requeue.Earlier(o.next, surge.Expiry)
	}
	s.PlannedFor, _ = plannedSize(set)
	s.Part = rollout.Part(set.Annotations[clusterv1alpha1.RolloutAnnotation])
	machines := &clusterv1alpha1.MachineList{}
	// The objects are the cache's own: they are only read.
	if err := r.client.List(ctx, machines, client.InNamespace(set.Namespace),
		client.MatchingFields{ownership.Index: string(set.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return s, fmt.Errorf("list Machines of %s: %w", set.Name, err)
	}
	minReady := time.Duration(o.md.Spec.MinReadySeconds) * time.Second
	now := r.clock.Now()
	for i := range machines.Items {
		m := &machines.Items[i]
		s.Present++
		available, left := health.IsAvailable(m, minReady, now)
		o.next = requeue.Earlier(o.next, left)
		o.counts.add(m, s.New, available)
		if m.DeletionTimestamp.IsZero() {
			s.Machines = append(s.Machines, rollout.Machine{Available: available, Marked: annotations.IsMarkedForDeletion(m)})
		}
	}
	unseen, left := o.room.UnseenMachines(set.UID, machines.Items)
	s.Present += int32(unseen)
	o.next = requeue.Earlier(o.next, left)
	return s, nil
}

// isGrowing says whether the set of an earlier template was given a larger size that it does not
// show. It will in a moment, unless the answer was lost: then nobody can tell, until such a request
// can no longer be under way.
func (o *observation) isGrowing(set *clusterv1alpha1.MachineSet, shown int32) bool {
	size, ok := o.room.UnseenSize(set.Name, set.ResourceVersion)
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

// isCurrent says whether the set's Machines are as the deployment's are to be: made from its
// template, and, once rolloutAfter has passed, not before that. What decides about a template is
// what it says, not a hash of it: a new field with a default, or another way to hash, must not
// replace machines.
func (o *observation) isCurrent(set *clusterv1alpha1.MachineSet) (bool, error) {
	canonical, err := machinetemplate.Canonical(&set.Spec.Template)
	if err != nil {
		return false, fmt.Errorf("read the template of %s: %w", set.Name, err)
	}
	return bytes.Equal(canonical, o.template) && (o.since == nil || madeSince(set, o.since)), nil
}

// madeSince says whether the set was made at that time or later. A set that was made because of the
// time says so: the API server's clock, which stamps the set, may be another than ours. Its stamps
// are rounded down to the second, so that in the very second one that does not say so may be older.
func madeSince(set *clusterv1alpha1.MachineSet, since *metav1.Time) bool {
	noted, err := time.Parse(time.RFC3339, set.Annotations[clusterv1alpha1.RolloutAfterAnnotation])
	if err == nil && !noted.Before(since.Time) {
		return true
	}
	return set.CreationTimestamp.After(since.Time)
}

// limits resolves the amounts of a rolling update; what is left out has the schema's default. Other
// strategies have none.
func limits(md *clusterv1alpha1.MachineDeployment) rollout.Limits {
	if kind := md.Spec.Strategy.Type; kind != "" && kind != clusterv1alpha1.RollingUpdateStrategy {
		return rollout.Limits{}
	}
	surge, unavailable := rollout.Amount{Value: 1}, rollout.Amount{}
	if rolling := md.Spec.Strategy.RollingUpdate; rolling != nil {
		surge, unavailable = amount(rolling.MaxSurge, surge), amount(rolling.MaxUnavailable, unavailable)
	}
	return rollout.Resolve(ptr.Deref(md.Spec.Replicas, 0), surge, unavailable)
}

func amount(v *intstr.IntOrString, unset rollout.Amount) rollout.Amount {
	if v == nil {
		return unset
	}
	if v.Type == intstr.Int {
		return rollout.Amount{Value: v.IntVal}
	}
	percent, err := intstr.GetScaledValueFromIntOrPercent(v, 100, false)
	if err != nil {
		return unset
	}
	return rollout.Amount{Value: int32(percent), Percent: true}
}

// revisionOf reads the revision of a set or deployment; 0 if it has none.
func revisionOf(o metav1.Object) int64 {
	revision, err := strconv.ParseInt(o.GetAnnotations()[clusterv1alpha1.RevisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return revision
}

// plannedSize reads the deployment's size when the set was last scaled; false if it is not noted.
func plannedSize(set *clusterv1alpha1.MachineSet) (rollout.Size, bool) {
	replicas, err := strconv.ParseInt(set.Annotations[clusterv1alpha1.DesiredReplicasAnnotation], 10, 32)
	if err != nil {
		return rollout.Size{}, false
	}
	most, err := strconv.ParseInt(set.Annotations[clusterv1alpha1.MaxReplicasAnnotation], 10, 32)
	if err != nil {
		return rollout.Size{}, false
	}
	return rollout.Size{Replicas: int32(replicas), Max: int32(most)}, true
}
