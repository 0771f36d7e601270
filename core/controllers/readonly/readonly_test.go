package readonly

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

func TestMain(m *testing.M) { os.Exit(controllertest.Run(m)) }

func machineSpec() clusterv1alpha1.MachineSpec {
	return clusterv1alpha1.MachineSpec{
		Versions: clusterv1alpha1.MachineVersions{Kubelet: "1.36.3"},
		ProviderSpec: clusterv1alpha1.ProviderSpec{Value: clusterv1alpha1.ProviderSpecValue{
			CloudProvider: "test", OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu,
			CloudProviderSpec: runtime.RawExtension{Raw: []byte(`{"flavor":"small"}`)},
		}},
	}
}

// What nobody controls is marked, once; nothing else is written.
func TestOPS10_ReadOnlyIsShownWhereSomebodyLooks(t *testing.T) {
	c := controllertest.New(t)
	labels := map[string]string{"pool": "a"}
	template := clusterv1alpha1.MachineTemplateSpec{ObjectMeta: clusterv1alpha1.ObjectMeta{Labels: labels}, Spec: machineSpec()}
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: c.Namespace, Name: name, Labels: labels}
	}
	deployment := &clusterv1alpha1.MachineDeployment{ObjectMeta: named("deployment"), Spec: clusterv1alpha1.MachineDeploymentSpec{
		Selector: clusterv1alpha1.LabelSelector{MatchLabels: labels}, Template: template,
	}}
	set := &clusterv1alpha1.MachineSet{ObjectMeta: named("set"), Spec: clusterv1alpha1.MachineSetSpec{
		Selector: clusterv1alpha1.LabelSelector{MatchLabels: labels}, Template: template,
	}}
	owned := &clusterv1alpha1.Machine{ObjectMeta: named("owned"), Spec: machineSpec()}
	owned.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "MachineSet", Name: "set", UID: types.UID("1"), Controller: new(true),
	}}
	machine := &clusterv1alpha1.Machine{ObjectMeta: named("machine"), Spec: machineSpec()}
	for _, o := range []client.Object{deployment, set, owned, machine} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var writes, statuses atomic.Int32
	c.Manage(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			writes.Add(1)
			return nil
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			writes.Add(1)
			return nil
		},
		SubResourcePatch: func(ctx context.Context, to client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			statuses.Add(1)
			return to.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
	}, Add)
	shown := func(o client.Object, conditions *[]metav1.Condition) string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err.Error()
		}
		p := apimeta.FindStatusCondition(*conditions, clusterv1alpha1.ConditionPaused)
		if p == nil || p.Status != metav1.ConditionTrue || p.Reason != clusterv1alpha1.ReasonReadOnly || p.ObservedGeneration != o.GetGeneration() {
			return fmt.Sprintf("%s shows %+v", o.GetName(), p)
		}
		return ""
	}
	all := func() string {
		return shown(deployment, &deployment.Status.Conditions) + shown(set, &set.Status.Conditions) + shown(machine, &machine.Status.Conditions)
	}
	c.Eventually(t, all)
	// A change of the spec is followed by the condition, and by nothing else.
	controllertest.Patch(t, c, deployment, func(d *clusterv1alpha1.MachineDeployment) { d.Spec.Replicas = new(int32(7)) })
	c.Eventually(t, all)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(owned), owned); err != nil || len(owned.Status.Conditions) > 0 {
		t.Errorf("the Machine of a set shows %v, %v", owned.Status.Conditions, err)
	}
	if w, s := writes.Load(), statuses.Load(); w != 0 || s > 4+3 {
		t.Errorf("%d writes and %d of status, want 4 of status but for conflicts", w, s)
	}
}
