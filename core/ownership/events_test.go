package ownership

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// setLister is a cache that holds these sets.
type setLister []clusterv1alpha1.MachineSet

func (l setLister) List(_ context.Context, out client.ObjectList, _ ...client.ListOption) error {
	if sets, ok := out.(*clusterv1alpha1.MachineSetList); ok {
		sets.Items = l
	}
	return nil
}

func (setLister) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.ErrUnsupported
}

func TestChangeConcernsTheControllerOrItsAdopters(t *testing.T) {
	labels := map[string]string{"group": "a"}
	cache := setLister{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "adopter"},
		Spec:       clusterv1alpha1.MachineSetSpec{Selector: clusterv1alpha1.LabelSelector{MatchLabels: labels}},
	}, {
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"},
		Spec:       clusterv1alpha1.MachineSetSpec{Selector: clusterv1alpha1.LabelSelector{MatchLabels: map[string]string{"group": "b"}}},
	}}
	ours := clusterv1alpha1.GroupVersion.String()
	for _, tc := range []struct {
		name  string
		owner *metav1.OwnerReference
		want  string
	}{
		{"our set", &metav1.OwnerReference{APIVersion: ours, Kind: "MachineSet", Name: "owner"}, "owner"},
		{"our set, in a version to come", &metav1.OwnerReference{APIVersion: clusterv1alpha1.GroupVersion.Group + "/v2", Kind: "MachineSet", Name: "owner"}, "owner"},
		{"another project's set", &metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "MachineSet", Name: "owner"}, ""},
		{"another kind of ours", &metav1.OwnerReference{APIVersion: ours, Kind: "MachineDeployment", Name: "owner"}, ""},
		{"nonsense", &metav1.OwnerReference{APIVersion: "a/b/c", Kind: "MachineSet", Name: "owner"}, ""},
		{"nobody", nil, "adopter"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Labels: labels}}
			if tc.owner != nil {
				tc.owner.Controller = new(true)
				m.OwnerReferences = []metav1.OwnerReference{*tc.owner}
			}
			got := client.ObjectKey{}
			for _, request := range OwnersIn(cache)(t.Context(), m) {
				got = request.NamespacedName
			}
			if want := (client.ObjectKey{Namespace: "ns", Name: tc.want}); tc.want != "" && got != want || tc.want == "" && got.Name != "" {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
