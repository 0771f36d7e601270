package v1alpha1

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestAddToScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	for range 2 { // adding twice is allowed
		if err := AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for kind, object := range map[string]runtime.Object{
		MachineDeploymentKind: &MachineDeployment{}, MachineDeploymentKind + "List": &MachineDeploymentList{},
		MachineSetKind: &MachineSet{}, MachineSetKind + "List": &MachineSetList{},
		MachineKind: &Machine{}, MachineKind + "List": &MachineList{},
	} {
		got, _, err := scheme.ObjectKinds(object)
		if want := GroupVersion.WithKind(kind); err != nil || !slices.Contains(got, want) {
			t.Errorf("%T is %v (%v), want %v", object, got, err, want)
		}
	}
}
