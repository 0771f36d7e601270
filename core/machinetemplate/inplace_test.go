package machinetemplate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

func TestOnlyTheInPlacePartIsCopied(t *testing.T) {
	template := &clusterv1alpha1.MachineSpec{
		Metadata:                clusterv1alpha1.ObjectMeta{CreationTimestamp: new("never"), Labels: map[string]string{"team": "a"}},
		Taints:                  []clusterv1alpha1.Taint{{Key: "gpu", Effect: "NoSchedule"}},
		NodeDrainTimeout:        &metav1.Duration{Duration: time.Minute},
		NodeVolumeDetachTimeout: &metav1.Duration{Duration: time.Hour},
		Versions:                clusterv1alpha1.MachineVersions{Kubelet: "1.37.0"},
		ProviderSpec:            clusterv1alpha1.ProviderSpec{Value: clusterv1alpha1.ProviderSpecValue{CloudProvider: "new"}},
	}
	machine := &clusterv1alpha1.MachineSpec{
		Versions:     clusterv1alpha1.MachineVersions{Kubelet: "1.36.0"},
		ProviderSpec: clusterv1alpha1.ProviderSpec{Value: clusterv1alpha1.ProviderSpecValue{CloudProvider: "old"}},
		MachineUID:   new("uid"), ProviderID: new("id"),
	}
	want := machine.DeepCopy()
	want.Metadata.Labels, want.Taints, want.NodeDrainTimeout = template.Metadata.Labels, template.Taints, template.NodeDrainTimeout
	want.NodeVolumeDetachTimeout = template.NodeVolumeDetachTimeout
	if apiequality.Semantic.DeepEqual(inPlace(machine), inPlace(template)) {
		t.Error("they are the same before anything was copied")
	}
	CopyInPlace(machine, template)
	if diff := cmp.Diff(want, machine); diff != "" {
		t.Errorf("what needs another VM, and what is the machine's own, has to stay: -want +got:\n%s", diff)
	}
	if !apiequality.Semantic.DeepEqual(inPlace(machine), inPlace(template)) {
		t.Error("they differ after they were copied")
	}
	machine.Metadata.Labels["team"] = "b"
	if template.Metadata.Labels["team"] != "a" {
		t.Error("machine and template share memory")
	}
}

func TestSameVMIgnoresWhatReachesMachinesInPlace(t *testing.T) {
	spec := func(kubelet, raw string, taints ...clusterv1alpha1.Taint) clusterv1alpha1.MachineSpec {
		s := clusterv1alpha1.MachineSpec{Taints: taints, Versions: clusterv1alpha1.MachineVersions{Kubelet: kubelet}}
		s.ProviderSpec.Value.CloudProviderSpec.Raw = []byte(raw)
		return s
	}
	for _, tc := range []struct {
		why      string
		template clusterv1alpha1.MachineSpec
		want     bool
	}{
		{"the order of fields says nothing", spec("1.36.0", `{"b":2,"a":1}`), true},
		{"a taint reaches the machine in place", spec("1.36.0", `{"a":1,"b":2}`, clusterv1alpha1.Taint{Key: "gpu"}), true},
		{"another kubelet needs another VM", spec("1.36.1", `{"a":1,"b":2}`), false},
		{"so does another field for the cloud", spec("1.36.0", `{"a":1,"b":3}`), false},
		{"what cannot be read is like nothing", spec("1.36.0", `{`), false},
	} {
		m := &clusterv1alpha1.Machine{Spec: spec("1.36.0", `{"a":1,"b":2}`)}
		m.Spec.MachineUID = new("uid")
		if got := IsSameVM(m, &clusterv1alpha1.MachineTemplateSpec{Spec: tc.template}); got != tc.want {
			t.Errorf("%s: got %t", tc.why, got)
		}
	}
}
