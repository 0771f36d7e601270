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

func TestWhatIsAskedOfAMachine(t *testing.T) {
	for _, tc := range []struct {
		key, value        string
		preserved, marked bool
		priority          int32
	}{
		{key: clusterv1alpha1.PreserveMachineAnnotation, value: "true", preserved: true},
		{key: clusterv1alpha1.PreserveMachineAnnotation, value: "false"},
		{key: clusterv1alpha1.DeleteMachineAnnotation, value: "", marked: true},
		{key: clusterv1alpha1.DeleteMachineAnnotation, value: "false", marked: true},
		{key: clusterv1alpha1.MachinePriorityAnnotation, value: "-3", priority: -3},
		{key: clusterv1alpha1.MachinePriorityAnnotation, value: "high"},
	} {
		m := &clusterv1alpha1.Machine{}
		m.Annotations = map[string]string{tc.key: tc.value}
		if IsPreserved(m) != tc.preserved || IsMarkedForDeletion(m) != tc.marked || Priority(m) != tc.priority {
			t.Errorf("%s=%q: preserved %t, marked %t, priority %d; want %+v",
				tc.key, tc.value, IsPreserved(m), IsMarkedForDeletion(m), Priority(m), tc)
		}
	}
}

func TestWhatIsAskedOfADeletion(t *testing.T) {
	type asked struct{ oneByOne, skipsDrain, skipsVolumes bool }
	for _, tc := range []struct {
		key, value string
		want       asked
	}{
		{key: clusterv1alpha1.DrainPodsWithVolumesAnnotation, value: "one-at-a-time", want: asked{oneByOne: true}},
		{key: clusterv1alpha1.DrainPodsWithVolumesAnnotation, value: "slowly"},
		{key: clusterv1alpha1.DrainPodsWithVolumesAnnotation, value: ""},
		{key: clusterv1alpha1.ExcludeNodeDrainingAnnotation, value: "", want: asked{skipsDrain: true}},
		{key: clusterv1alpha1.ExcludeNodeDrainingAnnotation, value: "false", want: asked{skipsDrain: true}},
		{key: clusterv1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation, value: "true", want: asked{skipsVolumes: true}},
		{key: "cluster.k8s.io/other", value: "true"},
	} {
		m := &clusterv1alpha1.Machine{}
		m.Annotations = map[string]string{tc.key: tc.value}
		if got := (asked{DrainsOneByOne(m), SkipsDrain(m), SkipsVolumes(m)}); got != tc.want {
			t.Errorf("%s=%q: %+v, want %+v", tc.key, tc.value, got, tc.want)
		}
	}
}

func TestEitherSizeMakesItAutoscaled(t *testing.T) {
	for _, c := range []struct {
		annotations map[string]string
		want        bool
	}{
		{nil, false},
		{map[string]string{clusterv1alpha1.NodeGroupMinSizeAnnotation: "0"}, true},
		{map[string]string{clusterv1alpha1.NodeGroupMaxSizeAnnotation: "3"}, true},
		{map[string]string{"cluster.k8s.io/other": "3"}, false},
	} {
		m := &clusterv1alpha1.MachineDeployment{}
		m.Annotations = c.annotations
		if got := IsAutoscaled(m); got != c.want {
			t.Errorf("%v: autoscaled is %t, want %t", c.annotations, got, c.want)
		}
	}
}

func TestHooksAreListedWithTheirOwners(t *testing.T) {
	const prefix = clusterv1alpha1.PreDrainHookAnnotationPrefix
	m := &clusterv1alpha1.Machine{}
	if got := Hooks(m, prefix); got != "" {
		t.Errorf("without annotations: %q", got)
	}
	m.Annotations = map[string]string{
		prefix + "/b": "storage", prefix + "/a": "backup", prefix: "", "other": "x", clusterv1alpha1.PreTerminateHookAnnotationPrefix: "later",
	}
	want := prefix + ", which names no owner; " + prefix + "/a of backup; " + prefix + "/b of storage"
	if got := Hooks(m, prefix); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
