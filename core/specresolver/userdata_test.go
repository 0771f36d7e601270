package specresolver

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
)

// keyed has Secrets by NAMESPACE/NAME and key, and counts what is read.
type keyed struct {
	client.Reader
	secrets map[string]map[string]string
	reads   int
}

func (k *keyed) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	k.reads++
	values, has := k.secrets[key.String()]
	secret, is := into.(*corev1.Secret)
	if !has || !is {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	secret.Data = map[string][]byte{}
	for name, value := range values {
		secret.Data[name] = []byte(value)
	}
	return nil
}

func TestLIFE2_WhereOwnUserDataComesFrom(t *testing.T) {
	from := &keyed{secrets: map[string]map[string]string{
		"ns/own": {"value": "own"}, "ns/as-mcm": {"userData": "as MCM has it"}, "ns/class": {"userData": "class"}, "ns/credentials": {"userData": "credentials"},
		"ns/other": {"password": "c4nary"}, "ns/empty": {"userData": ""},
	}}
	known, err := providerspec.Compile([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	refs := func(names ...string) (all []clusterv1alpha1.SecretReference) {
		for _, name := range names {
			all = append(all, clusterv1alpha1.SecretReference{Name: name})
		}
		return all
	}
	for name, c := range map[string]struct {
		named   string
		ofClass []clusterv1alpha1.SecretReference
		want    string
		wrong   string
	}{
		"none":                             {},
		"its own":                          {named: "own", want: "own"},
		"its own as MCM has it":            {named: "as-mcm", want: "as MCM has it"},
		"its own before that of the class": {named: "own", ofClass: refs("class"), want: "own"},
		"that of the class":                {ofClass: refs("class", "other"), want: "class"},
		"that of the class's credentials":  {ofClass: refs("class", "credentials"), want: "credentials"},
		"a class without it":               {ofClass: refs("other")},
		"a class whose key is empty":       {ofClass: refs("empty"), wrong: `Secret ns/empty: key "userData" is empty`},
		"a class whose Secret is gone":     {ofClass: refs("gone"), wrong: "Secret ns/gone is not there"},
		"a Secret that is gone":            {named: "gone", wrong: "Secret ns/gone is not there"},
		"a Secret without the key":         {named: "other", wrong: `Secret ns/other: it has neither key "value" nor key "userData"`},
	} {
		t.Run(name, func(t *testing.T) {
			checked, err := New(from, Options{}).Check(t.Context(), Effective{Namespace: "ns", Spec: []byte("{}"), OfClass: c.ofClass}, known)
			if err != nil {
				t.Fatal(err)
			}
			got, err := checked.UserData(t.Context(), c.named)
			switch {
			case c.wrong != "":
				if failure, is := errors.AsType[*instance.Failure](err); !is || failure.Message != c.wrong || strings.Contains(err.Error(), "c4nary") {
					t.Errorf("error %v, want %s", err, c.wrong)
				}
			case err != nil || (got == nil) != (c.want == "") || got != nil && string(got.Bytes()) != c.want:
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// TestSAFE8_OwnUserDataIsReadAfterTheRules: a spec that the rules refuse has no Secret read.
func TestSAFE8_OwnUserDataIsReadAfterTheRules(t *testing.T) {
	from := &keyed{secrets: map[string]map[string]string{"ns/own": {"value": "own"}}}
	known, err := providerspec.Compile([]byte(`{"properties":{"zone":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	refused := Effective{Namespace: "ns", Spec: []byte(`{"zone":{"secretKeyRef":{"name":"own","key":"value"}}}`)}
	checked, err := New(from, Options{}).Check(t.Context(), refused, known)
	if err == nil || checked.Passed() {
		t.Fatalf("the rules pass: %v", err)
	}
	if got, err := checked.UserData(t.Context(), "own"); got != nil || err != nil || from.reads > 0 {
		t.Errorf("got %v, %v, with %d reads", got, err, from.reads)
	}
}
