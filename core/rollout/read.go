package rollout

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/machinetemplate"
)

// StateOf reads a deployment, without its sets.
func StateOf(md *clusterv1alpha1.MachineDeployment) State {
	return State{
		Replicas: ptr.Deref(md.Spec.Replicas, 0), Strategy: md.Spec.Strategy.Type, Limits: limitsOf(md), Paused: md.Spec.Paused,
		HistoryLimit: ptr.Deref(md.Spec.RevisionHistoryLimit, 1),
	}
}

// limitsOf are those of a rolling update. Other strategies have none.
func limitsOf(md *clusterv1alpha1.MachineDeployment) Limits {
	if kind := md.Spec.Strategy.Type; kind != "" && kind != clusterv1alpha1.RollingUpdateStrategy {
		return Limits{}
	}
	var surge, unavailable *intstr.IntOrString
	if rolling := md.Spec.Strategy.RollingUpdate; rolling != nil {
		surge, unavailable = rolling.MaxSurge, rolling.MaxUnavailable
	}
	return Resolve(ptr.Deref(md.Spec.Replicas, 0), surge, unavailable)
}

// SetOf reads a set, without its machines.
func SetOf(set *clusterv1alpha1.MachineSet) Set {
	s := Set{
		Name:     set.Name,
		Revision: Revision(set),
		Desired:  ptr.Deref(set.Spec.Replicas, 0),
		// The set's controller reports that it has seen a spec once its cache shows what it did.
		Observed: set.Status.ObservedGeneration >= set.Generation && set.Spec.Replicas != nil && set.DeletionTimestamp.IsZero(),
		Part:     Part(set.Annotations[clusterv1alpha1.RolloutAnnotation]),
	}
	s.PlannedFor, _ = PlannedSize(set)
	return s
}

// Revision reads the revision of a set or deployment; 0 if it has none.
func Revision(o metav1.Object) int64 {
	revision, err := strconv.ParseInt(o.GetAnnotations()[clusterv1alpha1.RevisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return revision
}

// PlannedSize reads the deployment's size when the set was last scaled; false if it is not noted.
func PlannedSize(set *clusterv1alpha1.MachineSet) (Size, bool) {
	replicas, err := strconv.ParseInt(set.Annotations[clusterv1alpha1.DesiredReplicasAnnotation], 10, 32)
	if err != nil {
		return Size{}, false
	}
	most, err := strconv.ParseInt(set.Annotations[clusterv1alpha1.MaxReplicasAnnotation], 10, 32)
	if err != nil {
		return Size{}, false
	}
	return Size{Replicas: int32(replicas), Max: int32(most)}, true
}

// InitialSize is the size of a deployment that has none. A deployment that was never looked at gets
// the initial one. Later somebody has dropped the field, for instance to leave it to an autoscaler:
// the size is the one that its sets were last scaled for, or 0 if no set has a Machine.
func InitialSize(md *clusterv1alpha1.MachineDeployment, sets []clusterv1alpha1.MachineSet) int32 {
	replicas, newest := annotations.InitialReplicas(md), int64(-1)
	for i := range sets {
		set := &sets[i]
		size, ok := PlannedSize(set)
		if revision := Revision(set); ok && ptr.Deref(set.Spec.Replicas, 0) > 0 && revision > newest {
			newest, replicas = revision, size.Replicas
		}
	}
	if newest < 0 && md.Status.ObservedGeneration > 0 {
		return 0
	}
	return replicas
}

// Template is what the Machines of a deployment are to be made from.
type Template struct {
	// Canonical is the deployment's template in the form in which templates are compared. They are
	// compared by what they say, not by a hash: a new field with a default, or another way to hash,
	// must not replace machines.
	Canonical []byte
	// After is spec.rolloutAfter if that has passed: a set that was made before it is old.
	After *metav1.Time
}

// TemplateOf reads a deployment's template. After left, a later spec.rolloutAfter comes; 0 if there
// is none.
func TemplateOf(md *clusterv1alpha1.MachineDeployment, now time.Time) (t Template, left time.Duration, err error) {
	if t.Canonical, err = machinetemplate.Canonical(&md.Spec.Template); err != nil {
		return t, 0, fmt.Errorf("read the template: %w", err)
	}
	if after := md.Spec.RolloutAfter; after != nil {
		if left = max(after.Sub(now), 0); left == 0 {
			t.After = after
		}
	}
	return t, left, nil
}

// Find returns the set whose Machines are as the deployment's are to be, nil if there is none. Of
// several it is the one of the highest revision.
func (t Template) Find(sets []clusterv1alpha1.MachineSet) (*clusterv1alpha1.MachineSet, error) {
	var found *clusterv1alpha1.MachineSet
	for i := range sets {
		set := &sets[i]
		isIts, err := t.IsOf(set)
		if err != nil {
			return nil, err
		}
		if isIts && (found == nil || Revision(set) > Revision(found)) {
			found = set
		}
	}
	return found, nil
}

// IsOf says whether the set's Machines are as the deployment's are to be: made from its template,
// and, once rolloutAfter has passed, not before that.
func (t Template) IsOf(set *clusterv1alpha1.MachineSet) (bool, error) {
	canonical, err := machinetemplate.Canonical(&set.Spec.Template)
	if err != nil {
		return false, fmt.Errorf("read the template of %s: %w", set.Name, err)
	}
	return bytes.Equal(canonical, t.Canonical) && (t.After == nil || isMadeSince(set, t.After)), nil
}

// isMadeSince says whether the set was made at that time or later. An annotation says for which
// time a set was made, because the API server's clock may differ from ours. Without it the creation
// timestamp counts. That is rounded down to the second, so a set of that very second may be older.
func isMadeSince(set *clusterv1alpha1.MachineSet, after *metav1.Time) bool {
	noted, err := time.Parse(time.RFC3339, set.Annotations[clusterv1alpha1.RolloutAfterAnnotation])
	if err == nil && !noted.Before(after.Time) {
		return true
	}
	return set.CreationTimestamp.After(after.Time)
}
