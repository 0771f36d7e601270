package specresolver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
)

// shelf holds one class and one Cluster.
type shelf struct {
	client.Reader
	class   *clusterv1alpha1.MachineClass
	cluster *clusterv1alpha1.Cluster
	broken  error
}

func (s shelf) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.broken != nil {
		return s.broken
	}
	switch o := into.(type) {
	case *clusterv1alpha1.MachineClass:
		if s.class != nil && s.class.Name == key.Name && key.Namespace == "ns" {
			s.class.DeepCopyInto(o)
			return nil
		}
	case *clusterv1alpha1.Cluster:
		if s.cluster != nil && s.cluster.Name == key.Name && key.Namespace == "ns" {
			s.cluster.DeepCopyInto(o)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func raw(spec string) runtime.RawExtension {
	if spec == "" {
		return runtime.RawExtension{}
	}
	return runtime.RawExtension{Raw: []byte(spec)}
}

func machine(provider, spec, class, cluster string) *clusterv1alpha1.MachineSpec {
	m := &clusterv1alpha1.MachineSpec{}
	m.ProviderSpec.Value.CloudProvider, m.ProviderSpec.Value.CloudProviderSpec = provider, raw(spec)
	if class != "" {
		m.ProviderSpec.ValueFrom = &clusterv1alpha1.ProviderSpecSource{MachineClass: clusterv1alpha1.LocalReference{Name: class}}
	}
	if cluster != "" {
		m.ClusterRef = &clusterv1alpha1.LocalReference{Name: cluster}
	}
	return m
}

func TestAPI5_Inherit(t *testing.T) {
	from := shelf{
		class: &clusterv1alpha1.MachineClass{
			ObjectMeta: metav1.ObjectMeta{Name: "large"}, Provider: "fake", ProviderSpec: raw(`{"b":2,"c":2}`),
			SecretRef: &clusterv1alpha1.SecretReference{Name: "s"}, CredentialsSecretRef: &clusterv1alpha1.SecretReference{Name: "c"},
		},
		cluster: &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "blue"},
			Spec: clusterv1alpha1.ClusterSpec{
				CredentialsSecretRef: &clusterv1alpha1.SecretReference{Name: "all"},
				ProviderSpec: &clusterv1alpha1.ClusterProviderSpec{Value: clusterv1alpha1.ClusterProviderSpecValue{
					CloudProvider: "fake", CloudProviderSpec: raw(`{"a":1,"b":1,"c":1}`),
				}},
			},
		},
	}
	for _, tc := range []struct {
		name                 string
		spec                 *clusterv1alpha1.MachineSpec
		want, provider, cred string
		reason               string
		class                instance.Class
	}{
		{name: "its own", spec: machine("fake", `{ "c": 3 }`, "", ""), want: `{ "c": 3 }`, provider: "fake"},
		{name: "a class", spec: machine("", "", "large", ""), want: `{"b":2,"c":2}`, provider: "fake", cred: "s c"},
		{name: "all three", spec: machine("", `{"c":3}`, "large", "blue"), want: `{"a":1,"b":2,"c":3}`, provider: "fake", cred: "all s c"},
		{name: "a Cluster", spec: machine("fake", `{"c":3}`, "", "blue"), want: `{"a":1,"b":1,"c":3}`, provider: "fake", cred: "all"},
		{name: "a Cluster of another cloud", spec: machine("other", `{"c":3}`, "", "blue"), want: `{"c":3}`, provider: "other"},
		{name: "no such class", spec: machine("", "", "none", ""), reason: clusterv1alpha1.ReasonMachineClassNotFound, class: instance.Precondition},
		{name: "no such Cluster", spec: machine("fake", "{}", "", "none"), provider: "fake", want: "{}", reason: clusterv1alpha1.ReasonClusterNotFound, class: instance.Precondition},
		{name: "a class of another cloud", spec: machine("other", "{}", "large", ""), provider: "other", want: "{}", reason: clusterv1alpha1.ReasonSpecInvalid, class: instance.SpecInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Inherit(t.Context(), from, "ns", tc.spec)
			failure, _ := errors.AsType[*instance.Failure](err)
			if failure == nil {
				failure = &instance.Failure{}
			}
			if failure.Reason != tc.reason || failure.Class != tc.class {
				t.Errorf("got %v", err)
			}
			names := make([]string, 0, len(got.Credentials))
			for _, ref := range got.Credentials {
				names = append(names, ref.Name)
			}
			if diff := cmp.Diff(tc.want, string(got.Spec)) + cmp.Diff(tc.provider, got.Provider) + cmp.Diff(tc.cred, strings.Join(names, " ")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	away := errors.New("away")
	if _, err := Inherit(t.Context(), shelf{broken: away}, "ns", machine("", "", "large", "")); !errors.Is(err, away) {
		t.Errorf("an API server that is away is %v", err)
	}
}

func TestAPI4_Inspect(t *testing.T) {
	known, err := providerspec.Compile([]byte(`{"properties":{"key":{"writeOnly":true},"url":{"format":"uri"},"zone":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	creds := []clusterv1alpha1.SecretReference{{Name: "c"}}
	for _, tc := range []struct {
		name, spec, own string
		creds           []clusterv1alpha1.SecretReference
		listed          []string
		schema          *providerspec.Schema
		path, text      string
	}{
		{name: "a secret field", spec: `{"key":{"secretKeyRef":{"name":"s","key":"k"}}}`, schema: known},
		{name: "another field", spec: `{"zone":{"secretKeyRef":{"name":"s","key":"k"}}}`, schema: known, path: "zone", text: "writeOnly"},
		{name: "a ConfigMap anywhere", spec: `{"zone":{"configMapKeyRef":{"name":"s","key":"k"}}}`, schema: known},
		{name: "an address in the clear", spec: `{"url":"http://api.example.com"}`, schema: known, listed: []string{"*.example.com"}, path: "url", text: "plain http"},
		{name: "one that is allowed", spec: `{"url":"http://api.example.com"}`, schema: known, listed: []string{"http://*.example.com"}},
		{name: "a relative address that gets a secret", spec: `{"url":"/v3","key":{"secretKeyRef":{"name":"s","key":"k"}}}`, schema: known, path: "url", text: "absolute"},
		{name: "one that gets none", spec: `{"url":"/v3"}`, schema: known},
		{name: "an address whose name is written otherwise", spec: `{"URL":"https://example.org"}`, schema: known, listed: []string{"*.example.com"}, path: "URL", text: "--allow-endpoint"},
		{name: "its own one, written otherwise", spec: `{}`, own: `{"Url":"https://example.org"}`, creds: creds, schema: known, path: "Url", text: "inherited"},
		{name: "inherited credentials without a schema", spec: `{"url":"https://example.org"}`, own: `{}`, creds: creds},
		{name: "those beside any field of its own", spec: `{"zone":"a"}`, own: `{"zone":"a"}`, creds: creds, path: "", text: "why not"},
		{name: "those with a list", spec: `{}`, creds: creds, listed: []string{"*.example.com"}, path: "", text: "--allow-endpoint"},
		{name: "no schema", spec: `{"key":{"secretKeyRef":{"name":"s","key":"k"}}}`, path: "key", text: "why not"},
		{name: "an allowed address", spec: `{"url":"https://API.example.com:5000/v3"}`, schema: known, listed: []string{"*.example.com"}},
		{name: "another address", spec: `{"url":"https://example.org"}`, schema: known, listed: []string{"*.example.com"}, path: "url", text: "--allow-endpoint"},
		{name: "an address in disguise", spec: `{"url":"https://api.example.com@evil.org"}`, schema: known, listed: []string{"*.example.com"}, path: "url", text: "a user or a password"},
		{name: "any address without a list", spec: `{"url":"https://example.org"}`, schema: known},
		{name: "an inherited address with inherited credentials", spec: `{"url":"https://example.org"}`, own: `{"zone":"a"}`, creds: creds, schema: known},
		{name: "its own address with inherited credentials", spec: `{"url":"https://example.org"}`, own: `{"url":"https://example.org"}`, creds: creds, schema: known, path: "url", text: "inherited"},
		{name: "that from a ConfigMap", spec: `{}`, own: `{"url":{"configMapKeyRef":{"name":"s","key":"k"}}}`, creds: creds, schema: known, path: "url", text: "inherited"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			read, wrong := providerspec.Read([]byte(tc.spec))
			if wrong != nil {
				t.Fatal(wrong)
			}
			e := Effective{Spec: []byte(tc.spec), Own: []byte(tc.own), Credentials: tc.creds}
			if tc.schema == nil {
				tc.schema = providerspec.NoSchema("why not")
			}
			found := Rules{Endpoints: patterns(t, tc.listed...)}.inspect(e, read, tc.schema)
			if tc.text == "" {
				if len(found) > 0 {
					t.Errorf("refused: %v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Path != tc.path || !strings.Contains(found[0].Description, tc.text) {
				t.Errorf("got %v, want %s and %q", found, tc.path, tc.text)
			}
		})
	}
}

// patterns are what --allow-endpoint says.
func patterns(t *testing.T, texts ...string) []EndpointPattern {
	t.Helper()
	var all []EndpointPattern
	for _, text := range texts {
		p, err := ParseEndpointPattern(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func TestRefusalNamesEachField(t *testing.T) {
	if refusal(nil) != nil {
		t.Error("nothing is wrong")
	}
	failure := refusal(providerspec.Problems{{Path: "a", Description: "is wrong"}})
	if failure == nil || failure.Class != instance.SpecInvalid || len(failure.Fields) != 1 || failure.Fields[0].Path != "a" {
		t.Errorf("got %v", failure)
	}
}

// A Machine whose words change from one reconcile to the next is written each time.
func TestWhatIsWrongIsToldInOneOrder(t *testing.T) {
	known, err := providerspec.Compile([]byte(`{"additionalProperties":{"format":"uri"}}`))
	if err != nil {
		t.Fatal(err)
	}
	spec := `{"0":"https://example.org"`
	for i := range 2 * maxShown {
		spec += fmt.Sprintf(`,"%c%d":"https://example.org"`, 'z'-rune(i%26), i)
	}
	read, wrong := providerspec.Read([]byte(spec + "}"))
	if wrong != nil {
		t.Fatal(wrong)
	}
	inspect := func() *instance.Failure {
		return refusal(Rules{Endpoints: patterns(t, "*.example.com")}.inspect(Effective{}, read, known))
	}
	first := inspect()
	if first == nil || len(first.Fields) != maxShown || first.Fields[0].Path != "0" {
		t.Errorf("got %v", first)
	}
	for range 10 {
		if again := inspect(); again.Error() != first.Error() {
			t.Fatalf("told as %v, and then as %v", first, again)
		}
	}
}
