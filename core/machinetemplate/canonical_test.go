package machinetemplate

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

func TestTemplatesOfTheSameVMAreEqual(t *testing.T) {
	template := func(change func(*clusterv1alpha1.MachineTemplateSpec)) string {
		made := &clusterv1alpha1.MachineTemplateSpec{Spec: clusterv1alpha1.MachineSpec{
			Versions: clusterv1alpha1.MachineVersions{Kubelet: "1.36.0"},
		}}
		made.Spec.ProviderSpec.Value.CloudProviderSpec.Raw = []byte(`{"flavor":"small","disk":10}`)
		change(made)
		canonical, err := Canonical(made)
		if err != nil {
			t.Fatal(err)
		}
		return string(canonical)
	}
	type T = clusterv1alpha1.MachineTemplateSpec
	plain := template(func(*T) {})
	for _, tc := range []struct {
		why    string
		change func(*T)
		same   bool
	}{
		{"labels reach Machines in place", func(t *T) { t.Labels = map[string]string{"a": "b"} }, true},
		{"so do annotations", func(t *T) { t.Annotations = map[string]string{"a": "b"} }, true},
		{"and those of Nodes", func(t *T) { t.Spec.Metadata.Labels = map[string]string{"a": "b"} }, true},
		{"and taints", func(t *T) { t.Spec.Taints = []clusterv1alpha1.Taint{{Key: "a", Effect: "NoSchedule"}} }, true},
		{"and timeouts", func(t *T) { t.Spec.NodeDrainTimeout = &metav1.Duration{Duration: time.Hour} }, true},
		{"the order of fields says nothing", func(t *T) {
			t.Spec.ProviderSpec.Value.CloudProviderSpec.Raw = []byte(`{"disk": 10, "flavor": "small"}`)
		}, true},
		{"another kubelet is another VM", func(t *T) { t.Spec.Versions.Kubelet = "1.36.1" }, false},
		{"so is one that inherits from another Cluster", func(t *T) { t.Spec.ClusterRef = &clusterv1alpha1.LocalReference{Name: "a"} }, false},
		{"so is one with user data of its own", func(t *T) { t.Spec.Bootstrap = &clusterv1alpha1.MachineBootstrap{DataSecretName: "a"} }, false},
		{"another key is only on another VM", func(t *T) { t.Spec.ProviderSpec.Value.SSHPublicKeys = []string{"a"} }, false},
		{"so is what the cloud is told", func(t *T) {
			t.Spec.ProviderSpec.Value.CloudProviderSpec.Raw = []byte(`{"flavor":"small","disk":10.0}`)
		}, false},
	} {
		if got := template(tc.change); (got == plain) != tc.same {
			t.Errorf("%s, but -without +with:\n%s", tc.why, cmp.Diff(plain, got))
		}
	}
}

// Each field of a spec reaches Machines in place, needs another VM, or is each Machine's own.
// Whoever adds a field decides which.
func TestEveryFieldIsInPlaceOrNot(t *testing.T) {
	own := map[string]bool{"MachineUID": true, "ProviderID": true}
	reachesMachines := map[string]bool{"Metadata": true, "Taints": true, "NodeDrainTimeout": true, "NodeVolumeDetachTimeout": true, "NodeStartupTimeout": true}
	for field := range reflect.TypeFor[clusterv1alpha1.MachineSpec]().Fields() {
		spec := &clusterv1alpha1.MachineSpec{}
		value := reflect.ValueOf(spec).Elem().FieldByIndex(field.Index)
		fill(value)
		vm, part := forVM(spec), inPlace(spec)
		inVM := !reflect.ValueOf(vm).FieldByIndex(field.Index).IsZero()
		inPart := !reflect.ValueOf(part).FieldByIndex(field.Index).IsZero()
		if inPart != reachesMachines[field.Name] || inVM == (reachesMachines[field.Name] || own[field.Name]) {
			t.Errorf("%s: needs another VM: %t, in place: %t", field.Name, inVM, inPart)
		}
	}
}

// fill makes a value other than zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.String:
		v.SetString("x")
	case reflect.Struct:
		for _, f := range v.Fields() {
			fill(f)
		}
	}
}
