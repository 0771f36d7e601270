package machineset

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/machinetemplate"
	"github.com/millwright-dev/millwright/core/ownership"
)

// share is what the set's template gives to Machines that are there already.
type share struct {
	set *clusterv1alpha1.MachineSet
	// labels and annotations are those that the Machines carry, note what they say of where these
	// come from; empty if nothing comes from the set.
	labels, annotations map[string]string
	recordOutcomes      string
	// spec is the part that needs no other VM.
	spec clusterv1alpha1.MachineSpec
}

func shareOf(set *clusterv1alpha1.MachineSet) share {
	template := &set.Spec.Template
	// A Machine with nothing of its own shows what the template gives.
	bare := &clusterv1alpha1.Machine{}
	ownership.SyncMetadata(bare, template.Labels, template.Annotations)
	return share{
		set: set, labels: bare.Labels, annotations: bare.Annotations,
		recordOutcomes: bare.Annotations[clusterv1alpha1.ManagedAnnotation], spec: machinetemplate.InPlace(&template.Spec),
	}
}

// reached says whether the Machine has its share.
func (s share) reached(m *clusterv1alpha1.Machine) bool {
	// One that was given things before, and is given none now, says so; one that never was says
	// nothing.
	hasReservations := m.Annotations[clusterv1alpha1.ManagedAnnotation]
	if hasReservations != s.recordOutcomes && (s.recordOutcomes != "" || hasReservations != "{}") {
		return false
	}
	return within(s.labels, m.Labels) && within(s.annotations, m.Annotations) && machinetemplate.IsSameInPlace(s.spec, machinetemplate.InPlace(&m.Spec))
}

func within(part, whole map[string]string) bool {
	for key, value := range part {
		if has, ok := whole[key]; !ok || has != value {
			return false
		}
	}
	return true
}

// give returns the Machine with its share. What somebody else put on it stays.
func (s share) give(m *clusterv1alpha1.Machine) *clusterv1alpha1.Machine {
	given := m.DeepCopy()
	ownership.SyncMetadata(given, s.set.Spec.Template.Labels, s.set.Spec.Template.Annotations)
	machinetemplate.CopyInPlace(&given.Spec, &s.set.Spec.Template.Spec)
	return given
}

// sync brings the Machines that stay up to the template, as far as that needs no other VM: one
// patch for each that differs. It returns how many it changed.
func (r *reconciler) sync(ctx context.Context, o *observation, isDeploymentLeaving map[string]bool) (int, error) {
	known := o.memory.given(&o.set.Spec.Template)
	want := shareOf(o.set)
	now := make(map[types.UID]string, len(o.machines))
	var behind []*clusterv1alpha1.Machine
	for i := range o.machines {
		m := &o.machines[i]
		switch {
		case !m.DeletionTimestamp.IsZero() || isDeploymentLeaving[string(m.UID)]:
		case known[m.UID] == m.ResourceVersion || want.reached(m):
			now[m.UID] = m.ResourceVersion
		default:
			behind = append(behind, m)
		}
	}
	errs := make([]error, len(behind))
	done := make([]bool, len(behind))
	inParallel(len(behind), func(i int) bool {
		// The patch names what the template gives and no version: there is nobody else's change
		// that it could undo.
		err := r.client.Patch(ctx, want.give(behind[i]), client.MergeFrom(behind[i]))
		if client.IgnoreNotFound(err) != nil {
			errs[i] = fmt.Errorf("bring Machine %s up to the template: %w", behind[i].Name, err)
			return false
		}
		done[i] = true
		return true
	})
	changed := 0
	for i, m := range behind {
		if done[i] {
			now[m.UID] = m.ResourceVersion
			changed++
		}
	}
	o.memory.reached = now
	return changed, errors.Join(errs...)
}
