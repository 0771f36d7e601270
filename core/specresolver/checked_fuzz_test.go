package specresolver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
)

// vault holds a Secret and a ConfigMap under every name.
type vault struct {
	client.Reader
	secret, public string
}

func (v vault) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch o := into.(type) {
	case *corev1.Secret:
		o.Data = map[string][]byte{"k": []byte(v.secret), "user": []byte("me-" + v.secret)}
	case *corev1.ConfigMap:
		o.Data = map[string]string{"k": v.public}
	}
	return nil
}

// asJSON is a document as a client sends it, which may have been YAML.
func asJSON(document []byte) []byte {
	if json.Valid(document) {
		return document
	}
	if converted, err := yaml.YAMLToJSON(document); err == nil {
		return converted
	}
	return document
}

// FuzzResolve makes a machine from any specs of a Cluster, a MachineClass and its own.
func FuzzResolve(f *testing.F) {
	f.Add([]byte(`{"zone":"a","n":9007199254740993}`), []byte(`{"key":{"secretKeyRef":{"name":"s","key":"k"}}}`), []byte(`{"zone":{"configMapKeyRef":{"name":"m","key":"k"}}}`), true)
	f.Add([]byte(`{}`), []byte(`{"l":[{"secretKeyRef":{"name":"s","key":"user"}},{"secretKeyRef":{"name":"s","key":"none"}}]}`), []byte(`{"l2":null}`), true)
	f.Add([]byte(``), []byte(``), []byte(`{"a":{"secretKey\u0052ef":{"name":"s","key":"k"}}}`), false)
	f.Add([]byte(``), []byte(``), []byte(`{"a":{"value":{"value":"x"}}}`), false)
	f.Add([]byte(``), []byte(`{"a":{"secretKeyRef":{"name":"s","key":"k"},"value":{"b":1}}}`), []byte("a:\n  b: [1, 2.50, {secretKeyRef: {name: s, namespace: other, key: k}}]\n"), true)
	f.Add([]byte(``), []byte(``), []byte(`{"a\n\"":{"secretKeyRef":{"name":"../x","key":"k"}}}`), false)
	f.Add([]byte(``), []byte(``), []byte(strings.Repeat(`{"a":`, 101)+`{"secretKeyRef":{"name":"s","key":"k"}}`+strings.Repeat(`}`, 101)), false)
	f.Fuzz(func(t *testing.T, common, class, own []byte, inherits bool) {
		common, class, own = asJSON(common), asJSON(class), asJSON(own)
		seed := sha256.Sum256(bytes.Join([][]byte{common, class, own}, []byte{0}))
		held := vault{secret: "secret-" + hex.EncodeToString(seed[:8]), public: "public-" + hex.EncodeToString(seed[8:16])}
		spec := machine("fake", string(own), "", "")
		from := shelf{}
		if inherits {
			spec = machine("", string(own), "large", "blue")
			from = shelf{class: &clusterv1alpha1.MachineClass{}, cluster: &clusterv1alpha1.Cluster{}}
			from.class.Name, from.class.Provider, from.class.ProviderSpec = "large", "fake", runtime.RawExtension{Raw: class}
			from.class.CredentialsSecretRef = &clusterv1alpha1.SecretReference{Name: "c"}
			from.cluster.Name = "blue"
			from.cluster.Spec.ProviderSpec = &clusterv1alpha1.ClusterProviderSpec{Value: clusterv1alpha1.ClusterProviderSpecValue{
				CloudProvider: "fake", CloudProviderSpec: runtime.RawExtension{Raw: common},
			}}
		}
		checkResolved(t, from, held, spec)
	})
}

func checkResolved(t *testing.T, from shelf, held vault, spec *clusterv1alpha1.MachineSpec) {
	t.Helper()
	effective, err := Inherit(t.Context(), from, "ns", spec)
	checkTold(t, held, err)
	if err != nil {
		return
	}
	known, err := providerspec.Compile([]byte(`{"writeOnly":true}`))
	if err != nil {
		t.Fatal(err)
	}
	specs := New(held, Options{Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0))})
	resolve := func() (checked Checked, secrets map[string][]byte, err error) {
		if checked, err = specs.Check(t.Context(), effective, known); err == nil {
			secrets, _, err = checked.Secrets(t.Context())
		}
		return checked, secrets, err
	}
	got, secrets, err := resolve()
	checkTold(t, held, err)
	again, _, repeated := resolve()
	if diff := cmp.Diff(string(got.JSON()), string(again.JSON())); diff != "" || (err == nil) != (repeated == nil) || err != nil && err.Error() != repeated.Error() {
		t.Errorf("the same spec: %v, and then %v\n%s", err, repeated, diff)
	}
	for what, raw := range map[string][]byte{"what the driver is told": got.JSON(), "the spec": got.Spec().JSON(), "what is inherited": effective.Spec} {
		if holds(raw, held.secret) {
			t.Errorf("%s holds a secret: %s", what, raw)
		}
	}
	if err != nil {
		return
	}
	// What is left of an object from which a Secret was cut out may look like a reference.
	read, wrong := providerspec.Read(got.JSON())
	if wrong == nil && len(got.Spec().References) == 0 && !providerspec.Equal(read.JSON(), got.JSON()) {
		t.Errorf("the driver is told of references: %s", got.JSON())
	}
	for _, ref := range got.Spec().References {
		if ref.Kind != providerspec.Secret || !holds(secrets[ref.Path.String()], held.secret) {
			t.Errorf("%s is not among the secrets", ref.Path)
		}
	}
	if _, is := Secretless(effective); is && len(secrets) > 0 {
		t.Errorf("%s needs no secrets, and gets some", effective.Spec)
	}
}

// checkTold wants an error to be what a Machine can show: of bounded length, with the paths of what
// is wrong, and no secret.
func checkTold(t *testing.T, held vault, err error) {
	t.Helper()
	if err == nil {
		return
	}
	failure, is := errors.AsType[*instance.Failure](err)
	if !is {
		t.Fatalf("%v is no failure that a Machine can show", err)
	}
	const most = 32 << 10
	text := failure.Error()
	for _, field := range failure.Fields {
		text += field.Path + field.Description
	}
	if len(failure.Message) > most || len(failure.Fields) > maxShown {
		t.Errorf("%d bytes about %d fields", len(failure.Message), len(failure.Fields))
	}
	if holds([]byte(text), held.secret) {
		t.Errorf("a secret is told: %s", text)
	}
	if strings.ContainsAny(text, "\n\x00") {
		t.Errorf("the text is not one line: %q", text)
	}
}

// holds says whether a text holds a secret, as it is or encoded.
func holds(text []byte, secret string) bool {
	return bytes.Contains(text, []byte(secret)) || bytes.Contains(text, []byte(base64.StdEncoding.EncodeToString([]byte(secret)))) ||
		bytes.Contains(text, []byte(hex.EncodeToString([]byte(secret))))
}
