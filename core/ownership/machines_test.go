package ownership_test

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
	"github.com/millwright-dev/millwright/core/ownership"
)

func TestMain(m *testing.M) { os.Exit(controllertest.Run(m)) }

// TestMachinesAreFoundByTheirController: in a cache of everything, and in one of some namespaces.
func TestMachinesAreFoundByTheirController(t *testing.T) {
	c, elsewhere := controllertest.New(t), controllertest.New(t)
	for name, owner := range map[string]types.UID{"a-0": "a", "a-1": "a", "b-0": "b", "alone": ""} {
		create(t, c, name, owner)
	}
	create(t, elsewhere, "a-2", "a")
	create(t, elsewhere, "lonely", "")

	both := map[string]cache.Config{c.Namespace: {}, elsewhere.Namespace: {}}
	for name, options := range map[string]cache.Options{"all namespaces": {}, "two namespaces": {DefaultNamespaces: both}} {
		t.Run(name, func(t *testing.T) {
			machines := ownership.NewMachines(startCache(t, c, options))
			for owner, want := range map[string][]string{
				"a": {"a-0", "a-1"}, "b": {"b-0"}, "nobody": nil, ownership.NoOwner: {"alone"},
			} {
				found, err := machines.Of(t.Context(), c.Namespace, owner)
				if diff := cmp.Diff(want, names(found)); diff != "" || err != nil {
					t.Errorf("of %s (-want +got):\n%s%v", owner, diff, err)
				}
			}
			found, err := machines.In(t.Context(), c.Namespace)
			if diff := cmp.Diff([]string{"a-0", "a-1", "alone", "b-0"}, names(found)); diff != "" || err != nil {
				t.Errorf("in the namespace (-want +got):\n%s%v", diff, err)
			}
		})
	}
}

// TestMachinesAreNotCopied: two looks at a cache of everything find the same objects.
func TestMachinesAreNotCopied(t *testing.T) {
	c := controllertest.New(t)
	create(t, c, "a-0", "a")
	machines := ownership.NewMachines(startCache(t, c, cache.Options{}))
	first, err := machines.Of(t.Context(), c.Namespace, "a")
	if err != nil {
		t.Fatal(err)
	}
	second, err := machines.In(t.Context(), c.Namespace)
	if err != nil || len(first) != 1 || !slices.Equal(first, second) {
		t.Errorf("found %p and then %p, %v", first, second, err)
	}
}

// startCache returns a cache with the indexes that has all Machines.
func startCache(t *testing.T, c *controllertest.Cluster, options cache.Options) cache.Cache {
	t.Helper()
	var config *rest.Config
	c.As(t, func(user *rest.Config) { config = user })
	options.Scheme = c.WithWatch.Scheme()
	made, err := cache.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := ownership.AddIndexes(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := made.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if !made.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache is not filled")
	}
	return made
}

func create(t *testing.T, c *controllertest.Cluster, name string, owner types.UID) {
	t.Helper()
	m := &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name},
		Spec: clusterv1alpha1.MachineSpec{
			Versions: clusterv1alpha1.MachineVersions{Kubelet: "1.36.1"},
			ProviderSpec: clusterv1alpha1.ProviderSpec{Value: clusterv1alpha1.ProviderSpecValue{
				CloudProvider: "fake", OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu,
				CloudProviderSpec: runtime.RawExtension{Raw: []byte(`{}`)},
			}},
		},
	}
	if owner != "" {
		m.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: clusterv1alpha1.MachineSetKind, Name: "set", UID: owner, Controller: new(true),
		}}
	}
	if err := c.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// names are those of Machines, sorted.
func names(machines []*clusterv1alpha1.Machine) []string {
	var found []string
	for _, m := range machines {
		found = append(found, m.Name)
	}
	slices.Sort(found)
	return found
}
