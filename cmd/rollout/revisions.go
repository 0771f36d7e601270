package rollout

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/machinetemplate"
	"github.com/millwright-dev/millwright/core/rollout"
)

// changeCause is the annotation in which people say why they changed a template.
const changeCause = "kubernetes.io/change-cause"

// History lists the revisions that can be returned to, the current one last.
func (r Rollout) History(ctx context.Context) error {
	md, err := r.get(ctx)
	if err != nil {
		return err
	}
	sets, err := r.sets(ctx, md)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(r.Out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "REVISION\tMACHINESET\tMACHINES\tKUBELET\tAGE\tCHANGE-CAUSE")
	for i := range sets {
		set := &sets[i]
		_, _ = fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\t%s\n", rollout.Revision(set), set.Name, ptr.Deref(set.Spec.Replicas, 0),
			set.Spec.Template.Spec.Versions.Kubelet, duration.HumanDuration(time.Since(set.CreationTimestamp.Time)),
			cmp.Or(set.Annotations[changeCause], "<none>"))
	}
	return w.Flush()
}

// Undo returns to the template of a former revision, or, for 0, of the one before the current. What
// reaches machines in place, labels, annotations, taints and timeouts, belongs to no revision and
// stays as it is.
func (r Rollout) Undo(ctx context.Context, to int64) error {
	md, err := r.get(ctx)
	if err != nil {
		return err
	}
	if md.Spec.Paused {
		return fmt.Errorf("machinedeployment %q is paused: resume it first", md.Name)
	}
	sets, err := r.sets(ctx, md)
	if err != nil {
		return err
	}
	set, err := find(sets, to)
	if err != nil {
		return fmt.Errorf("machinedeployment %q: %w", md.Name, err)
	}
	same, err := sameTemplate(&md.Spec.Template, &set.Spec.Template)
	if err != nil {
		return err
	}
	if same {
		_, err := fmt.Fprintf(r.Out, "machinedeployment %q skipped: its template is that of revision %d already\n", md.Name, rollout.Revision(set))
		return err
	}
	return r.change(ctx, md, fmt.Sprintf("rolled back to revision %d", rollout.Revision(set)), func(md *clusterv1alpha1.MachineDeployment) {
		spec := set.Spec.Template.Spec.DeepCopy()
		machinetemplate.CopyInPlace(spec, &md.Spec.Template.Spec)
		md.Spec.Template.Spec = *spec
		if cause, ok := set.Annotations[changeCause]; ok {
			metav1.SetMetaDataAnnotation(&md.ObjectMeta, changeCause, cause)
		} else {
			delete(md.Annotations, changeCause)
		}
	})
}

func sameTemplate(a, b *clusterv1alpha1.MachineTemplateSpec) (bool, error) {
	one, err := machinetemplate.Canonical(a)
	if err != nil {
		return false, fmt.Errorf("read the template: %w", err)
	}
	other, err := machinetemplate.Canonical(b)
	if err != nil {
		return false, fmt.Errorf("read the revision's template: %w", err)
	}
	return bytes.Equal(one, other), nil
}

// find returns the set of a revision, which it may have had before, or, for 0, the last but one.
// The sets are sorted.
func find(sets []clusterv1alpha1.MachineSet, to int64) (*clusterv1alpha1.MachineSet, error) {
	if to == 0 {
		if len(sets) < 2 {
			return nil, fmt.Errorf("there is no former revision")
		}
		return &sets[len(sets)-2], nil
	}
	wanted := strconv.FormatInt(to, 10)
	for i := range sets {
		former := strings.Split(sets[i].Annotations[clusterv1alpha1.RevisionHistoryAnnotation], ",")
		if rollout.Revision(&sets[i]) == to || slices.Contains(former, wanted) {
			return &sets[i], nil
		}
	}
	return nil, fmt.Errorf("there is no revision %d; `rollout history` lists them", to)
}

// sets are those of the deployment, the oldest revision first.
func (r Rollout) sets(ctx context.Context, md *clusterv1alpha1.MachineDeployment) ([]clusterv1alpha1.MachineSet, error) {
	list := &clusterv1alpha1.MachineSetList{}
	if err := r.Client.List(ctx, list, client.InNamespace(md.Namespace)); err != nil {
		return nil, err
	}
	sets := slices.DeleteFunc(list.Items, func(s clusterv1alpha1.MachineSet) bool { return !metav1.IsControlledBy(&s, md) })
	slices.SortFunc(sets, func(a, b clusterv1alpha1.MachineSet) int {
		return cmp.Compare(rollout.Revision(&a), rollout.Revision(&b))
	})
	return sets, nil
}
