package sdk_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

type keyedNetwork struct {
	Name string `json:"name"`
	Key  string `json:"key,omitempty"`
}

type secretSpec struct {
	Size     string            `json:"size"`
	Auth     *auth             `json:"auth,omitempty"`
	Networks []keyedNetwork    `json:"networks,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Count    int               `json:"count,omitempty"`
}

type auth struct {
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
}

func TestSecretsAreReadIntoTheirFields(t *testing.T) {
	for name, tc := range map[string]struct {
		spec    string
		secrets map[string]string
		want    secretSpec
		fails   bool
	}{
		"none":                    {`{"size":"s"}`, nil, secretSpec{Size: "s"}, false},
		"a field of an object":    {`{"size":"s"}`, map[string]string{"auth.password": "x"}, secretSpec{Size: "s", Auth: &auth{Password: "x"}}, false},
		"one beside another":      {`{"size":"s","auth":{"user":"u"}}`, map[string]string{"auth.password": "x"}, secretSpec{Size: "s", Auth: &auth{"u", "x"}}, false},
		"over what stands there":  {`{"size":"s","auth":{"password":"old"}}`, map[string]string{"auth.password": "x"}, secretSpec{Size: "s", Auth: &auth{Password: "x"}}, false},
		"an element of a list":    {`{"size":"s","networks":[{"name":"a"},{"name":"b"}]}`, map[string]string{"networks[1].key": "x"}, secretSpec{Size: "s", Networks: []keyedNetwork{{"a", ""}, {"b", "x"}}}, false},
		"a list that is shorter":  {`{"size":"s"}`, map[string]string{"networks[1].key": "x"}, secretSpec{Size: "s"}, false},
		"a key with a dot":        {`{"size":"s"}`, map[string]string{`labels["a.b"]`: "x"}, secretSpec{Size: "s", Labels: map[string]string{"a.b": "x"}}, false},
		"keys of a whole Secret":  {`{"size":"s"}`, map[string]string{"clouds.yaml": "x", "other": "y", "": "z", "a[": "z", "a[x]": "z", "..": "z"}, secretSpec{Size: "s"}, false},
		"a field that is no text": {`{"size":"s"}`, map[string]string{"count": "x", "auth": "y"}, secretSpec{Size: "s"}, false},
		"a required one":          {`{}`, map[string]string{"size": "x"}, secretSpec{Size: "x"}, false},
		"beside a large number":   {`{"size":"s","count":9007199254740993}`, map[string]string{"auth.user": "x"}, secretSpec{Size: "s", Auth: &auth{User: "x"}, Count: 9007199254740993}, false},
		"no object":               {`[]`, map[string]string{"size": "x"}, secretSpec{}, true},
		"no JSON":                 {`{`, map[string]string{"size": "x"}, secretSpec{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			provider := &driverv1alpha1.ProviderContext{ProviderSpec: []byte(tc.spec), Secrets: map[string][]byte{}}
			for key, value := range tc.secrets {
				provider.Secrets[key] = []byte(value)
			}
			var got secretSpec
			if err := sdk.ReadProvider(provider, &got); (err != nil) != tc.fails {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if string(provider.GetProviderSpec()) != tc.spec {
				t.Errorf("the request was changed: %s", provider.GetProviderSpec())
			}
		})
	}
}

// What names the account is read also from a spec that is wrong in other ways.
func TestAccountsAreReadFromAnySpec(t *testing.T) {
	var got auth
	provider := &driverv1alpha1.ProviderContext{ProviderSpec: []byte(`{"user":"u","sizes":7}`), Secrets: map[string][]byte{"password": []byte("x")}}
	if err := sdk.ReadAccount(provider, &got); err != nil || got != (auth{"u", "x"}) {
		t.Errorf("%+v, %v", got, err)
	}
	provider.ProviderSpec = []byte(`{"user":7}`)
	named := sdk.FieldViolations(sdk.ReadAccount(provider, &got))
	if len(named) != 1 || named[0].GetField() != "user" {
		t.Errorf("a user that is a number: %v", named)
	}
}
