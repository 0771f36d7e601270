package machinepages

import (
	"fmt"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

func TestMain(m *testing.M) { os.Exit(controllertest.Run(m)) }

// Each Machine is in one page, and the version is that of a moment at which all were there.
func TestAllMachinesAreInSomePage(t *testing.T) {
	const machines = 2*size + 1
	c := controllertest.New(t)
	for i := range machines {
		m := &clusterv1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: fmt.Sprintf("m-%d", i)},
			Spec: clusterv1alpha1.MachineSpec{
				Versions: clusterv1alpha1.MachineVersions{Kubelet: "1.36.1"},
				ProviderSpec: clusterv1alpha1.ProviderSpec{Value: clusterv1alpha1.ProviderSpecValue{
					CloudProvider: "fake", OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu,
					CloudProviderSpec: runtime.RawExtension{Raw: []byte(`{}`)},
				}},
			},
		}
		if err := c.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	var pages []int
	names := map[string]bool{}
	version, err := Each(t.Context(), c, func(page []clusterv1alpha1.Machine) {
		pages = append(pages, len(page))
		for i := range page {
			names[page[i].Name] = true
		}
	}, client.InNamespace(c.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != machines || len(pages) != 3 || version == "" {
		t.Errorf("%d Machines of %d in pages of %v, version %q", len(names), machines, pages, version)
	}
	calls := 0
	if _, err := Each(t.Context(), c, func([]clusterv1alpha1.Machine) { calls++ }, client.InNamespace("elsewhere")); err != nil || calls != 1 {
		t.Errorf("without Machines: %d pages, %v", calls, err)
	}
}
