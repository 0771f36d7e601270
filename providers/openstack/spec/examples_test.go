package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"gopkg.in/yaml.v2"
)

// manifest is what the tests look at of a manifest.
type manifest struct {
	Kind       string            `yaml:"kind"`
	StringData map[string]string `yaml:"stringData"`
	Spec       struct {
		ProviderSpec providerSpec `yaml:"providerSpec"`
		Template     struct {
			Spec struct {
				ProviderSpec providerSpec `yaml:"providerSpec"`
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

type providerSpec struct {
	Value struct {
		CloudProviderSpec map[string]any `yaml:"cloudProviderSpec"`
	} `yaml:"value"`
}

func readManifests(t *testing.T, name string) []manifest {
	_ = os.Getenv("MILLWRIGHT_INPUTS") // so that Go runs the test again when they change: tools/inputs.sh
	t.Helper()
	file, err := os.Open(filepath.Join("../../../deploy/openstack/examples", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var all []manifest
	for decoder := yaml.NewDecoder(file); ; {
		var one manifest
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
}

// TestExamplesAreRead puts together from the examples in deploy what core would send: what a
// machine inherits under its own spec, and Secrets beside it.
func TestExamplesAreRead(t *testing.T) {
	for _, name := range []string{"machinedeployment.yaml", "cluster.yaml"} {
		t.Run(name, func(t *testing.T) {
			merged, secrets := map[string]any{}, map[string][]byte{}
			for _, m := range readManifests(t, name) {
				for key, value := range m.StringData {
					secrets[key] = []byte(value)
				}
				for _, layer := range []providerSpec{m.Spec.ProviderSpec, m.Spec.Template.Spec.ProviderSpec} {
					for field, value := range layer.Value.CloudProviderSpec {
						object, _ := value.(map[any]any)
						if _, refers := object["secretKeyRef"]; !refers {
							merged[field] = value
						}
					}
				}
			}
			raw, err := json.Marshal(plainKeys(merged))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Read(raw, secrets, Environment{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Account.Method() != MethodApplicationCredential || got.Ports[0].Subnet == "" {
				t.Errorf("is read as %+v", got)
			}
		})
	}
}

func TestExampleOfCloudsIsRead(t *testing.T) {
	secret := readManifests(t, "clouds.yaml")[0]
	getenv := func(name string) string { return map[string]string{"OS_CLOUD": "openstack"}[name] }
	env, err := EnvironmentFrom(Sources{Getenv: getenv, Clouds: []byte(secret.StringData["clouds.yaml"])})
	if err != nil || env.Account.Method() != MethodApplicationCredential || env.Account.IdentityEndpoint == "" {
		t.Errorf("%v, %v", env.Account, err)
	}
}

// plainKeys returns a value of YAML as JSON knows it.
func plainKeys(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, element := range v {
			v[key] = plainKeys(element)
		}
	case []any:
		for i, element := range v {
			v[i] = plainKeys(element)
		}
	case map[any]any:
		object := map[string]any{}
		for key, element := range v {
			object[fmt.Sprint(key)] = plainKeys(element)
		}
		return object
	}
	return value
}
