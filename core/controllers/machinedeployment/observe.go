package machinedeployment

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/controllers/fleet"
	"github.com/millwright-dev/millwright/core/rollout"
)

// observation is a deployment, its sets and their Machines.
type observation struct {
	md   *clusterv1alpha1.MachineDeployment
	sets []clusterv1alpha1.MachineSet
	// template is the deployment's, in the form in which templates are compared.
	template []byte
	// fresh is the set of that template; nil if there is none.
	fresh *clusterv1alpha1.MachineSet
	// state is what package rollout plans on.
	state rollout.State
	// counts are what the status shows.
	counts counts
	// nextAvailable is in how long the next Machine becomes available if nothing happens; 0 if none does.
	nextAvailable time.Duration
}

type counts struct{ present, updated, ready, available int32 }

func (r *reconciler) observe(ctx context.Context, md *clusterv1alpha1.MachineDeployment, sets []clusterv1alpha1.MachineSet) (*observation, error) {
	template, err := fleet.CanonicalTemplate(&md.Spec.Template)
	if err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	o := &observation{md: md, sets: sets, template: template}
	for i := range sets {
		set := &sets[i]
		same, err := hasTemplate(set, template)
		if err != nil {
			return nil, err
		}
		if same && (o.fresh == nil || revisionOf(set) > revisionOf(o.fresh)) {
			o.fresh = set
		}
	}
	o.state = rollout.State{Replicas: *md.Spec.Replicas, Limits: limits(md), HistoryLimit: 1}
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
		// The set's controller reports what it has seen only once the cache, which it shares with us, shows what it did.
		Observed: set.Status.ObservedGeneration >= set.Generation && set.Spec.Replicas != nil && set.DeletionTimestamp.IsZero(),
	}
	if set.Spec.Replicas != nil {
		s.Desired = *set.Spec.Replicas
	}
	s.PlannedFor, _ = planned(set)
	machines := &clusterv1alpha1.MachineList{}
	// The objects are the cache's own: they are only read.
	if err := r.client.List(ctx, machines, client.InNamespace(set.Namespace),
		client.MatchingFields{machineIndex: string(set.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return s, fmt.Errorf("list Machines of %s: %w", set.Name, err)
	}
	minReady := time.Duration(o.md.Spec.MinReadySeconds) * time.Second
	now := r.clock.Now()
	for i := range machines.Items {
		m := &machines.Items[i]
		s.Present++
		available, left := fleet.Available(m, minReady, now)
		if left > 0 && (o.nextAvailable == 0 || left < o.nextAvailable) {
			o.nextAvailable = left
		}
		o.counts.add(m, s.New, available)
		if m.DeletionTimestamp.IsZero() {
			s.Machines = append(s.Machines, rollout.Machine{Available: available, Marked: fleet.Marked(m)})
		}
	}
	return s, nil
}

func (c *counts) add(m *clusterv1alpha1.Machine, updated, available bool) {
	c.present++
	if updated {
		c.updated++
	}
	if fleet.Ready(m) {
		c.ready++
	}
	if available {
		c.available++
	}
}

// hasTemplate says whether the set's Machines are made from that template. What decides is what a template says, not a
// hash of it: a new field with a default, or another way to hash, must not replace machines.
func hasTemplate(set *clusterv1alpha1.MachineSet, template []byte) (bool, error) {
	canonical, err := fleet.CanonicalTemplate(&set.Spec.Template)
	if err != nil {
		return false, fmt.Errorf("read the template of %s: %w", set.Name, err)
	}
	return bytes.Equal(canonical, template), nil
}

// limits resolves the strategy's amounts; what is left out has the schema's default.
func limits(md *clusterv1alpha1.MachineDeployment) rollout.Limits {
	surge, unavailable := rollout.Amount{Value: 1}, rollout.Amount{}
	if rolling := md.Spec.Strategy.RollingUpdate; rolling != nil {
		surge, unavailable = amount(rolling.MaxSurge, surge), amount(rolling.MaxUnavailable, unavailable)
	}
	return rollout.Resolve(*md.Spec.Replicas, surge, unavailable)
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

// planned reads the deployment's size when the set was last scaled; false if it is not noted.
func planned(set *clusterv1alpha1.MachineSet) (rollout.Size, bool) {
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
