package machinedeployment_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

// furnish gives the template all that reaches Machines in place; bare takes it away again.
func furnish(md *clusterv1alpha1.MachineDeployment) {
	template := &md.Spec.Template
	template.Labels = map[string]string{"group": "nodes", "team": "a"}
	template.Annotations = map[string]string{"note": "b"}
	template.Spec.Metadata.Labels = map[string]string{"zone": "c"}
	template.Spec.Taints = []clusterv1alpha1.Taint{{Key: "gpu", Value: "d", Effect: corev1.TaintEffectNoSchedule}}
	template.Spec.NodeDrainTimeout = &metav1.Duration{Duration: time.Minute}
	template.Spec.NodeVolumeDetachTimeout = &metav1.Duration{Duration: time.Hour}
	md.Spec.MinReadySeconds = 1
}

func bare(md *clusterv1alpha1.MachineDeployment) {
	template := &md.Spec.Template
	template.Labels, template.Annotations = map[string]string{"group": "nodes"}, nil
	template.Spec.Metadata, template.Spec.Taints = clusterv1alpha1.ObjectMeta{}, nil
	template.Spec.NodeDrainTimeout, template.Spec.NodeVolumeDetachTimeout = nil, nil
	md.Spec.MinReadySeconds = 0
}

// What needs no other VM reaches the current set without a new revision, and goes again; old sets
// keep their template.
func TestROL3_InPlaceChangesReachTheCurrentSet(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 2)
	isComplete(t, c, md, 2)
	controllertest.Patch(t, c, md, kubelet("1.36.1"))
	isComplete(t, c, md, 2)
	before, audit := sets(t, c), c.Audit(t)
	isCurrent := before[1]
	controllertest.Patch(t, c, &isCurrent, func(s *clusterv1alpha1.MachineSet) {
		metav1.SetMetaDataLabel(&s.ObjectMeta, "foreign", "yes")
	})
	want := before[1].Spec
	reached := func(labels map[string]string) {
		t.Helper()
		c.Eventually(t, func() string {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(&isCurrent), &isCurrent); err != nil {
				return err.Error()
			}
			return cmp.Diff(want, isCurrent.Spec) + cmp.Diff(labels, isCurrent.Labels)
		})
	}
	labels := maps.Clone(before[1].Labels)
	labels["foreign"] = "yes"

	controllertest.Patch(t, c, md, furnish)
	want.MinReadySeconds = 1
	want.Template = *before[1].Spec.Template.DeepCopy()
	want.Template.Labels["team"] = "a"
	want.Template.Annotations = md.Spec.Template.Annotations
	want.Template.Spec.Metadata = md.Spec.Template.Spec.Metadata
	want.Template.Spec.Taints = md.Spec.Template.Spec.Taints
	want.Template.Spec.NodeDrainTimeout = md.Spec.Template.Spec.NodeDrainTimeout
	want.Template.Spec.NodeVolumeDetachTimeout = md.Spec.Template.Spec.NodeVolumeDetachTimeout
	labels["team"] = "a"
	reached(labels)

	controllertest.Patch(t, c, md, bare)
	want = before[1].Spec
	delete(labels, "team")
	reached(labels)

	isComplete(t, c, md, 2)
	after := sets(t, c)
	if len(after) != 2 || revision(&after[1]) != 2 || revision(md) != 2 {
		t.Errorf("there is a new revision: %v", tellSets(t, c))
	}
	if diff := cmp.Diff(before[0].Spec, after[0].Spec); diff != "" {
		t.Errorf("the old set was changed: %s", diff)
	}
	if audit.Made() > 2 {
		t.Errorf("%d Machines were made, 2 were there", audit.Made())
	}
}

// A set that selects by more than its deployment keeps what it selects by.
func TestROL3_AnAdoptedSetKeepsItsSelector(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	stop := manage(t, c)
	md := newDeployment(t, c, 1, func(md *clusterv1alpha1.MachineDeployment) { md.Spec.Template.Labels["extra"] = "yes" })
	isComplete(t, c, md, 1)
	stop()
	set := sets(t, c)[0]
	if err := c.Delete(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	odd := &clusterv1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "odd", Labels: map[string]string{"group": "nodes", "extra": "yes"}},
		Spec:       *set.Spec.DeepCopy(),
	}
	odd.Spec.Selector.MatchLabels = map[string]string{"group": "nodes", "extra": "yes"}
	odd.Spec.Selector.MatchExpressions = []clusterv1alpha1.LabelSelectorRequirement{{Key: "odd", Operator: "Exists"}}
	odd.Spec.Template.Labels = map[string]string{"group": "nodes", "extra": "yes", "odd": ""}
	if err := c.Delete(t.Context(), &set); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), odd); err != nil {
		t.Fatal(err)
	}
	md = newDeployment(t, c, 1, furnish)
	manage(t, c)
	isComplete(t, c, md, 1)
	all := sets(t, c)
	if len(all) != 1 || !metav1.IsControlledBy(&all[0], md) {
		t.Fatalf("sets: %v", tellSets(t, c))
	}
	if diff := cmp.Diff(odd.Spec.Template.Labels, all[0].Spec.Template.Labels); diff != "" {
		t.Errorf("labels that the set would not find: %s", diff)
	}
	if all[0].Spec.Template.Annotations["note"] != "b" || len(all[0].Spec.Template.Spec.Taints) != 1 {
		t.Errorf("what does not concern its selector is missing: %+v", all[0].Spec.Template)
	}
}

// part returns what each set says of its part in a rollout.
func parts(t *testing.T, c *controllertest.Cluster) string {
	t.Helper()
	var all []string
	for _, s := range sets(t, c) {
		all = append(all, s.Annotations[clusterv1alpha1.RolloutAnnotation])
	}
	return fmt.Sprintf("%q", all)
}

// While a rollout goes on its sets say so, new ones from the start; afterwards none does, also if
// the end came while nobody looked.
func TestROL6_SetsSayThatARolloutGoesOn(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	stop := manage(t, c)
	md := newDeployment(t, c, 2)
	isComplete(t, c, md, 2)
	await := func(want ...string) {
		t.Helper()
		c.Eventually(t, func() string {
			if got := parts(t, c); got != fmt.Sprintf("%q", want) {
				return fmt.Sprintf("sets say %s, want %q", got, want)
			}
			return ""
		})
	}
	await("")
	controllertest.Patch(t, c, md, size(3))
	isComplete(t, c, md, 3)
	await("")

	actor.Up(func(m *clusterv1alpha1.Machine) bool { return m.Spec.Versions.Kubelet == "1.36.0" })
	controllertest.Patch(t, c, md, kubelet("1.36.1"))
	await("Outdated", "Current")
	holds := func() (held []bool) {
		for _, s := range sets(t, c) {
			_, hold := s.Annotations[clusterv1alpha1.HoldScaleDownAnnotation]
			held = append(held, hold)
		}
		return held
	}
	if held := holds(); !slices.Equal(held, []bool{false, false}) {
		t.Errorf("sets without autoscaler sizes hold their Nodes: %t", held)
	}
	controllertest.Patch(t, c, md, func(md *clusterv1alpha1.MachineDeployment) {
		metav1.SetMetaDataAnnotation(&md.ObjectMeta, clusterv1alpha1.NodeGroupMaxSizeAnnotation, "9")
	})
	c.Eventually(t, func() string {
		if held := holds(); !slices.Equal(held, []bool{true, true}) {
			return fmt.Sprintf("sets hold their Nodes: %t", held)
		}
		return ""
	})
	// Back, and on again: the sets change places.
	controllertest.Patch(t, c, md, kubelet("1.36.0"))
	isComplete(t, c, md, 3)
	await("", "")
	actor.Up(func(*clusterv1alpha1.Machine) bool { return true })
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return false })
	controllertest.Patch(t, c, md, func(md *clusterv1alpha1.MachineDeployment) {
		kubelet("1.36.1")(md)
		bounds("100%", "0")(md)
	})
	staying(t, c, 6, 3)
	await("Outdated", "Current")
	stop()
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return true })
	c.Eventually(t, func() string {
		if n := len(c.Machines(t)); n != 3 {
			return fmt.Sprintf("%d Machines", n)
		}
		return ""
	})
	await("Outdated", "Current")
	manage(t, c)
	await("", "")
	isComplete(t, c, md, 3)
	if held := holds(); slices.Contains(held, true) {
		t.Errorf("sets hold their Nodes after the rollout: %t", held)
	}
}
