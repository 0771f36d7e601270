package apischema

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// TestSeedsApply applies the manifests that people have had for years, as they
// would paste them, and reads back what the controllers get to see. The two
// older ones have the same name, so they cannot be there at the same time.
func TestSeedsApply(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"metakube-2018", "metakube-2019", "metakube-2024"} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("testdata", "seeds", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			// The older two have a typing error that no API server accepts.
			manifest := strings.Replace(string(raw), "kind: machineDeployment\n", "kind: MachineDeployment\n", 1)
			u := newUser(t)
			u.namespace = "kube-system"
			u.do(manifest, "apply", "-f", "-")
			t.Cleanup(func() { u.cleanUp(manifest) })

			got, want := u.storedAndWritten(manifest)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("what was stored differs from what was written (-written +stored):\n%s", diff)
			}
		})
	}
}

// storedAndWritten returns the MachineDeployment as the API server holds it and as the manifest has
// it. Each is a generic value without metadata, status, and the defaults that the manifest leaves
// out.
func (u *user) storedAndWritten(manifest string) (stored, written map[string]any) {
	u.t.Helper()
	var fromManifest struct {
		Metadata struct{ Name string }
		Spec     map[string]any
	}
	if err := yaml.Unmarshal([]byte(manifest), &fromManifest); err != nil {
		u.t.Fatal(err)
	}
	var md clusterv1alpha1.MachineDeployment
	key := types.NamespacedName{Namespace: u.namespace, Name: fromManifest.Metadata.Name}
	if err := u.server.client.Get(u.t.Context(), key, &md); err != nil {
		u.t.Fatal(err)
	}
	encoded, err := yaml.Marshal(md.Spec)
	if err != nil {
		u.t.Fatal(err)
	}
	if err := yaml.Unmarshal(encoded, &stored); err != nil {
		u.t.Fatal(err)
	}
	written = fromManifest.Spec
	for _, defaulted := range []string{"minReadySeconds", "progressDeadlineSeconds", "revisionHistoryLimit", "strategy"} {
		delete(stored, defaulted)
		delete(written, defaulted)
	}
	return stored, dropEmpty(written).(map[string]any)
}

// dropEmpty returns the value without the fields that mean the same as their
// absence: null everywhere, and what is empty outside cloudProviderSpec.
func dropEmpty(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return value
	}
	kept := map[string]any{}
	for name, field := range fields {
		if name == "cloudProviderSpec" {
			kept[name] = field
			continue
		}
		field = dropEmpty(field)
		switch v := field.(type) {
		case nil:
			continue
		case bool:
			if !v {
				continue
			}
		case []any:
			if len(v) == 0 {
				continue
			}
		case map[string]any:
			if len(v) == 0 {
				continue
			}
		}
		kept[name] = field
	}
	return kept
}
