package machinedeployment_test

import (
	"context"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/controllers/machinedeployment"
	"github.com/millwright-dev/millwright/core/controllers/machineset"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

// A deployment that is as it should be costs no write, however often it is looked at.
func TestNothingIsWrittenWhenNothingHappens(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	var writes atomic.Int64
	c.Manage(t, interceptor.Funcs{
		Patch: func(ctx context.Context, inner client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if obj.GetName() != "barrier" {
				writes.Add(1)
			}
			return inner.Patch(ctx, obj, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, inner client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if obj.GetName() != "barrier" {
				writes.Add(1)
			}
			return inner.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	},
		func(mgr ctrl.Manager) error { return machinedeployment.Add(mgr, machinedeployment.Options{}) },
		func(mgr ctrl.Manager) error { return machineset.Add(mgr, machineset.Options{}) })
	md := newDeployment(t, c, 3)
	isComplete(t, c, md, 3)
	c.Eventually(t, func() string {
		// The last status of the set may be on its way.
		if s := sets(t, c)[0].Status; s.AvailableReplicas != 3 || s.NextIndex != 3 {
			return "the set is not settled"
		}
		return ""
	})
	before := writes.Load()
	touch := func(m *metav1.ObjectMeta) { metav1.SetMetaDataAnnotation(m, "touched", "yes") }
	controllertest.Patch(t, c, md, func(md *clusterv1alpha1.MachineDeployment) { touch(&md.ObjectMeta) })
	for _, s := range sets(t, c) {
		controllertest.Patch(t, c, &s, func(s *clusterv1alpha1.MachineSet) { touch(&s.ObjectMeta) })
	}
	for _, m := range c.Machines(t) {
		controllertest.Patch(t, c, &m, func(m *clusterv1alpha1.Machine) { touch(&m.ObjectMeta) })
	}
	// An object without a size gets one, after what was touched before it has been looked at.
	barrier := &clusterv1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "barrier"},
		Spec: clusterv1alpha1.MachineSetSpec{
			Selector: clusterv1alpha1.LabelSelector{MatchLabels: map[string]string{"group": "barrier"}},
			Template: clusterv1alpha1.MachineTemplateSpec{
				ObjectMeta: clusterv1alpha1.ObjectMeta{Labels: map[string]string{"group": "barrier"}},
				Spec:       md.Spec.Template.Spec,
			},
		},
	}
	if err := c.Create(t.Context(), barrier); err != nil {
		t.Fatal(err)
	}
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(barrier), barrier); err != nil {
			return err.Error()
		}
		if barrier.Status.AvailableReplicas != 1 {
			return "the barrier is not up"
		}
		return ""
	})
	if n := writes.Load() - before; n != 0 {
		t.Errorf("%d writes for nothing", n)
	}
}
