package admission

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/specresolver"
)

func machine(spec string) *clusterv1alpha1.Machine {
	return &clusterv1alpha1.Machine{Spec: clusterv1alpha1.MachineSpec{ProviderSpec: clusterv1alpha1.ProviderSpec{
		Value: clusterv1alpha1.ProviderSpecValue{CloudProvider: "test", CloudProviderSpec: runtime.RawExtension{Raw: []byte(spec)}},
	}}}
}

func deployment(spec string) *clusterv1alpha1.MachineDeployment {
	d := &clusterv1alpha1.MachineDeployment{}
	d.Spec.Template.Spec = machine(spec).Spec
	return d
}

const foreignSecret = `{"key":{"secretKeyRef":{"namespace":"other","name":"s","key":"k"}}}`

func TestWhatIsRefusedWithoutADriver(t *testing.T) {
	deleted := deployment(foreignSecret)
	deleted.DeletionTimestamp = new(metav1.Now())
	class := &clusterv1alpha1.MachineClass{Provider: "test", SecretRef: &clusterv1alpha1.SecretReference{Namespace: "other", Name: "s"}}
	cluster := &clusterv1alpha1.Cluster{}
	cluster.Spec.CredentialsSecretRef = class.SecretRef
	for name, tc := range map[string]struct {
		kind    string
		is, was any
		refused string // which field; empty for none
		warned  bool
	}{
		"a template":                         {kind: "MachineDeployment", is: deployment(`{}`), warned: true},
		"a template with another's Secret":   {kind: "MachineDeployment", is: deployment(foreignSecret), refused: "spec.template.spec.providerSpec.value.cloudProviderSpec.key", warned: true},
		"one that was accepted once":         {kind: "MachineDeployment", is: deployment(foreignSecret), was: deployment(foreignSecret)},
		"one that is changed":                {kind: "MachineDeployment", is: deployment(foreignSecret), was: deployment(`{}`), refused: "spec.template.spec.providerSpec.value.cloudProviderSpec.key", warned: true},
		"one that is being deleted":          {kind: "MachineDeployment", is: deleted, was: deployment(`{}`)},
		"a new Machine":                      {kind: "Machine", is: machine(`{"a":1}`), warned: true},
		"a Machine that stays":               {kind: "Machine", is: machine(`{"a":1}`), was: machine(`{"a": 1}`)},
		"a Machine that is to be another":    {kind: "Machine", is: machine(`{"a":1}`), was: machine(`{"b":1}`), refused: "spec.providerSpec"},
		"a class with another's Secret":      {kind: "MachineClass", is: class, refused: "secretRef.namespace", warned: true},
		"that class, unchanged":              {kind: "MachineClass", is: class, was: class},
		"a cluster with another's Secret":    {kind: "Cluster", is: cluster, refused: "spec.credentialsSecretRef.namespace"},
		"that cluster, unchanged":            {kind: "Cluster", is: cluster, was: cluster},
		"a kind that is none of the project": {kind: "Pod", is: machine(foreignSecret)},
	} {
		t.Run(name, func(t *testing.T) {
			drivers, err := driver.New(driver.Config{ClusterUID: "c"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			h := &handler{Options{Drivers: drivers, Specs: specresolver.New(nil, specresolver.Options{})}}
			request := admission.Request{}
			request.Namespace, request.Kind.Kind, request.Operation = "ns", tc.kind, admissionv1.Create
			request.Object.Raw, _ = json.Marshal(tc.is)
			if tc.was != nil {
				request.Operation = admissionv1.Update
				request.OldObject.Raw, _ = json.Marshal(tc.was)
			}
			got := h.Handle(t.Context(), request)
			if got.Allowed != (tc.refused == "") || !got.Allowed && !strings.Contains(got.Result.Message, tc.refused+":") {
				t.Errorf("allowed: %t, %+v; want the field %q", got.Allowed, got.Result, tc.refused)
			}
			if (len(got.Warnings) > 0) != tc.warned {
				t.Errorf("the warnings are %q", got.Warnings)
			}
		})
	}
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	request := admission.Request{}
	request.Kind.Kind, request.Object.Raw = "Machine", []byte(`{"spec":1}`)
	if got := (&handler{}).Handle(t.Context(), request); got.Allowed || got.Result.Code != http.StatusBadRequest {
		t.Errorf("got %+v", got)
	}
}
