package fleet

import (
	"testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

func TestPaused(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "": true, "no": true, "false": false} {
		set := &clusterv1alpha1.MachineSet{}
		set.Annotations = map[string]string{clusterv1alpha1.PausedAnnotation: value}
		if got := Paused(set); got != want {
			t.Errorf("%q pauses: %t", value, got)
		}
	}
	if Paused(&clusterv1alpha1.MachineSet{}) {
		t.Error("paused without an annotation")
	}
}
