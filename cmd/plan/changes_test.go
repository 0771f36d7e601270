package plan

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/forecast"
	"github.com/millwright-dev/millwright/core/machinetemplate"
	"github.com/millwright-dev/millwright/core/rollout"
)

// What a plan says of a field of the template is what core does with it.
func TestEffectsAreThoseOfCore(t *testing.T) {
	eachMachinesOwn := map[string]bool{"machineUID": true, "providerID": true}
	nothing, err := machinetemplate.Canonical(&clusterv1alpha1.MachineTemplateSpec{})
	if err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[clusterv1alpha1.MachineSpec]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if eachMachinesOwn[name] {
			continue
		}
		template := &clusterv1alpha1.MachineTemplateSpec{}
		fill(reflect.ValueOf(&template.Spec).Elem().FieldByIndex(field.Index))
		got, err := machinetemplate.Canonical(template)
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool]Effect{true: InPlace, false: Replaces}[bytes.Equal(got, nothing)]
		if effect := effectOf("spec.template.spec." + name + ".x"); effect != want {
			t.Errorf("%s: %s, want %s", name, effect, want)
		}
	}
	for path, want := range map[string]Effect{
		"spec.replicas": Scales, "spec.rolloutAfter": Replaces, "spec.minReadySeconds": InPlace,
		"spec.template.metadata.labels.a": InPlace, "spec.strategy.type": Steers, "spec.replicasOfAnother": Steers,
	} {
		if got := effectOf(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
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
		if raw, ok := reflect.TypeAssert[*runtime.RawExtension](v.Addr()); ok {
			raw.Raw = []byte(`{"a":1}`)
			return
		}
		for _, f := range v.Fields() {
			fill(f)
		}
	}
}

// Fields are compared one by one, lists as a whole. What may be a secret is not shown.
func TestChangesNameFields(t *testing.T) {
	before, after := &clusterv1alpha1.MachineDeployment{}, &clusterv1alpha1.MachineDeployment{}
	before.Spec.Template.Spec.ProviderSpec.Value.CloudProviderSpec.Raw = []byte(
		`{"flavor":"small","disk":10,"networks":[{"name":"a"}],"applicationCredentialSecret":"hidden-1","empty":""}`)
	after.Spec.Template.Spec.ProviderSpec.Value.CloudProviderSpec.Raw = []byte(
		`{"flavor":"large","networks":[{"name":"b"}],"disk":10.0,"applicationCredentialSecret":"hidden-2","userDataSecretRef":{"name":"shown"},"image":"` + strings.Repeat("x", 100) + `"}`)
	after.Spec.Template.Spec.NodeDrainTimeout = &metav1.Duration{Duration: time.Hour}
	got, err := changesOf(before, after)
	if err != nil {
		t.Fatal(err)
	}
	cloud := "spec.template.spec.providerSpec.value.cloudProviderSpec."
	want := []Change{
		{"spec.template.spec.nodeDrainTimeout", "", "1h0m0s", InPlace},
		{cloud + "applicationCredentialSecret", "(not shown)", "(not shown)", Replaces},
		{cloud + "disk", "10", "10.0", Replaces},
		{cloud + "empty", `""`, "", Replaces},
		{cloud + "flavor", "small", "large", Replaces},
		{cloud + "image", "", strings.Repeat("x", 59) + "…", Replaces},
		{cloud + "networks", `[{"name":"a"}]`, `[{"name":"b"}]`, Replaces},
		{cloud + "userDataSecretRef.name", "", "shown", Replaces},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	broken := &clusterv1alpha1.MachineDeployment{}
	broken.Spec.Template.Spec.ProviderSpec.Value.CloudProviderSpec.Raw = []byte("{")
	if _, err := changesOf(broken, after); err == nil {
		t.Error("what cannot be read is compared")
	}
	if _, err := changesOf(nil, broken); err == nil {
		t.Error("what cannot be read is compared")
	}
}

// Many waves and many names are cut short, unless all are wanted. What is waited for at the end
// stands below.
func TestPlansArePrintedShort(t *testing.T) {
	p := &Plan{Namespace: "team", Name: "nodes", Create: 14, Delete: 56, Replicas: 14, LeastAvailable: 13, WaitsFor: "It waits."}
	for range 14 {
		p.Waves = append(p.Waves, Wave{
			Create: map[string]int{forecast.NewSet: 1, "old": 2}, Delete: map[string][]string{"old": {"a", "b", "c", "d"}}, Machines: 15, Available: 13,
		})
	}
	var short, wide strings.Builder
	if err := p.Print(&short, false); err != nil {
		t.Fatal(err)
	}
	if err := p.Print(&wide, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"14 machines are created, 56 machines are deleted, in 14 waves. At no time are fewer than 13 of 14 available.",
		"10     15         13          1 in a new set, 2 in old                a, b, c and 1 more\n…",
		"3 more like these; -o wide shows them\n14 ", "\n\nIt waits.\n",
	} {
		if !strings.Contains(short.String(), want) {
			t.Errorf("%q is not in\n%s", want, short.String())
		}
	}
	if got := strings.Count(wide.String(), "a, b, c, d\n"); got != 14 {
		t.Errorf("%d waves are whole, want 14:\n%s", got, wide.String())
	}
}

// A plan says what keeps its deployment from being complete.
func TestPlansSayWhatIsWaitedFor(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	md := &clusterv1alpha1.MachineDeployment{}
	later := &clusterv1alpha1.MachineDeployment{}
	later.Spec.RolloutAfter = new(metav1.NewTime(now.Add(time.Hour)))
	for _, tc := range []struct {
		wait rollout.Wait
		md   *clusterv1alpha1.MachineDeployment
		want string
	}{
		{rollout.Wait{For: rollout.Nothing}, md, ""},
		{rollout.Wait{For: rollout.Nothing}, later, "From 2026-01-01T01:00:00Z on, all machines are replaced"},
		{rollout.Wait{For: rollout.Resumption}, md, "paused"},
		{rollout.Wait{For: rollout.Request, Machines: 2, Set: "a"}, md, "2 machines of MachineSet a stay until somebody deletes them"},
		{rollout.Wait{For: rollout.Availability, Machines: 2, Set: "a"}, md, "2 machines of MachineSet a are not available"},
		{rollout.Wait{For: rollout.Observation, Set: "a"}, md, "MachineSet a does not get on"},
	} {
		if got := waitsFor(tc.wait, tc.md, now); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.wait.For, got, tc.want)
		}
	}
}
