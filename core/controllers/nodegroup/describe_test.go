package nodegroup

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// What a driver says becomes the annotations that the autoscaler reads.
func TestATemplateIsWrittenInTheAutoscalersWords(t *testing.T) {
	md := &clusterv1alpha1.MachineDeployment{}
	describe(md, &driverv1alpha1.InstanceTemplate{
		InstanceType: "large", Architecture: "arm64", OperatingSystem: "linux",
		Capacity: map[string]string{"cpu": "8", "memory": "16Gi", "ephemeral-storage": "20Gi", "pods": "110", "nvidia.com/gpu": "2", "hugepages-2Mi": "1Gi"},
		Labels:   map[string]string{"topology.kubernetes.io/zone": "a", "kubernetes.io/arch": "amd64", "empty": ""},
		Taints:   []*driverv1alpha1.Taint{{Key: "gpu", Value: "yes", Effect: driverv1alpha1.TaintEffect_TAINT_EFFECT_NO_SCHEDULE}, {Key: "spot", Effect: driverv1alpha1.TaintEffect_TAINT_EFFECT_NO_EXECUTE}},
	}, "template-1")
	want := map[string]string{
		cpu: "8", memory: "16Gi", disk: "20Gi", maxPods: "110", gpuType: "nvidia.com/gpu", gpuCount: "2",
		labels:                               "kubernetes.io/arch=amd64,kubernetes.io/os=linux,node.kubernetes.io/instance-type=large,topology.kubernetes.io/zone=a",
		taints:                               "gpu=yes:NoSchedule,spot=:NoExecute",
		clusterv1alpha1.CapacityOfAnnotation: "template-1",
	}
	if diff := cmp.Diff(want, md.Annotations); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	describe(md, &driverv1alpha1.InstanceTemplate{Capacity: map[string]string{"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "0"}}, "template-2")
	want = map[string]string{cpu: "2", memory: "4Gi", clusterv1alpha1.CapacityOfAnnotation: "template-2"}
	if diff := cmp.Diff(want, md.Annotations); diff != "" {
		t.Errorf("of another template (-want +got)\n%s", diff)
	}
}

// A user's own values are never written over, and what is there for this template is not asked for
// again.
func TestAUsersValuesStay(t *testing.T) {
	of := clusterv1alpha1.CapacityOfAnnotation
	for _, tc := range []struct {
		name        string
		annotations map[string]string
		want        bool
	}{
		{"nobody has written any", nil, true},
		{"a user has written both", map[string]string{cpu: "1", memory: "1Gi"}, false},
		{"a user has written one", map[string]string{cpu: "1"}, false},
		{"they are ours, of this template", map[string]string{cpu: "1", memory: "1Gi", of: "this"}, false},
		{"they are ours, of another template", map[string]string{cpu: "1", memory: "1Gi", of: "another"}, true},
		{"they were ours, and a user has taken them over", map[string]string{cpu: "1", memory: "1Gi"}, false},
		{"a user has written something else", map[string]string{labels: "a=b"}, true},
	} {
		md := &clusterv1alpha1.MachineDeployment{}
		md.Annotations = tc.annotations
		if got := isWanted(md, "this"); got != tc.want {
			t.Errorf("%s: wanted %t", tc.name, got)
		}
	}
	md := &clusterv1alpha1.MachineDeployment{}
	md.Annotations = map[string]string{labels: "a=b"}
	describe(md, &driverv1alpha1.InstanceTemplate{Capacity: map[string]string{"cpu": "1", "memory": "1Gi"}, Labels: map[string]string{"c": "d"}}, "this")
	if diff := cmp.Diff(map[string]string{cpu: "1", memory: "1Gi", labels: "a=b", of: "this"}, md.Annotations); diff != "" {
		t.Errorf("beside a user's (-want +got)\n%s", diff)
	}
	if identify("a", []byte("b")) == identify("a", []byte("c")) || identify("a", []byte("b")) == identify("b", []byte("b")) {
		t.Error("templates are not told apart")
	}
}

// The autoscaler leaves alone what is paused, for as long as it is; another's pause stays.
func TestAPauseIsMirroredForTheAutoscaler(t *testing.T) {
	const paused, theirs, size = clusterv1alpha1.PausedAnnotation, clusterv1alpha1.ClusterAPIPausedAnnotation, clusterv1alpha1.NodeGroupMinSizeAnnotation
	for name, tc := range map[string]struct{ annotations, want map[string]string }{
		"paused":                       {map[string]string{size: "1", paused: ""}, map[string]string{size: "1", paused: "", theirs: paused}},
		"paused, and written":          {map[string]string{size: "1", paused: "", theirs: paused}, nil},
		"paused without sizes":         {map[string]string{paused: ""}, nil},
		"paused no more":               {map[string]string{size: "1", theirs: paused}, map[string]string{size: "1"}},
		"pause switched off":           {map[string]string{size: "1", paused: "false", theirs: paused}, map[string]string{size: "1", paused: "false"}},
		"paused, sizes taken away":     {map[string]string{paused: "", theirs: paused}, map[string]string{paused: ""}},
		"paused by another":            {map[string]string{size: "1", theirs: "true"}, nil},
		"paused, and also by another":  {map[string]string{size: "1", paused: "", theirs: "true"}, nil},
		"neither":                      {map[string]string{size: "1"}, nil},
		"neither, without annotations": {},
	} {
		md := &clusterv1alpha1.MachineDeployment{}
		md.Annotations = maps.Clone(tc.annotations)
		want, changes := tc.want, tc.want != nil
		if !changes {
			want = tc.annotations
		}
		if got := mirrorPause(md); got != changes {
			t.Errorf("%s: changed %t", name, got)
		}
		if diff := cmp.Diff(want, md.Annotations); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
