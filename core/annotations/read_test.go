package annotations

import (
	"testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

func TestAnyValueButFalsePauses(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "": true, "no": true, "false": false} {
		set := &clusterv1alpha1.MachineSet{}
		set.Annotations = map[string]string{clusterv1alpha1.PausedAnnotation: value}
		if got := IsPaused(set); got != want {
			t.Errorf("with the value %q: paused = %t, want %t", value, got, want)
		}
	}
	if IsPaused(&clusterv1alpha1.MachineSet{}) {
		t.Error("an object without the annotation is paused")
	}
}

func TestInitialSizeIsTheAutoscalersMinimum(t *testing.T) {
	for value, want := range map[string]int32{"3": 3, "0": 0, "-1": 0, "many": 0} {
		set := &clusterv1alpha1.MachineSet{}
		set.Annotations = map[string]string{clusterv1alpha1.NodeGroupMinSizeAnnotation: value}
		if got := InitialReplicas(set); got != want {
			t.Errorf("with a minimum of %q: %d replicas, want %d", value, got, want)
		}
	}
	if got := InitialReplicas(&clusterv1alpha1.MachineSet{}); got != 1 {
		t.Errorf("without a minimum: %d replicas, want 1", got)
	}
}
