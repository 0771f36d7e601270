package inheritance

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/controllers/fleet/fleettest"
	"github.com/millwright-dev/millwright/core/specresolver"
)

func TestMain(m *testing.M) { os.Exit(fleettest.Run(m)) }

// A class that nobody names any more lets go of its Secrets, but for the one that another class still needs.
func TestAPI5_SecretsAreReleasedOneByOne(t *testing.T) {
	c := fleettest.New(t)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: c.Namespace, Name: name} }
	class := func(name string, secret, credentials string) *clusterv1alpha1.MachineClass {
		return &clusterv1alpha1.MachineClass{
			ObjectMeta: meta(name), Provider: "test", ProviderSpec: runtime.RawExtension{Raw: []byte(`{}`)},
			SecretRef:            &clusterv1alpha1.SecretReference{Name: secret},
			CredentialsSecretRef: &clusterv1alpha1.SecretReference{Name: credentials},
		}
	}
	heir := func(of string) *clusterv1alpha1.Machine {
		return &clusterv1alpha1.Machine{ObjectMeta: meta("of-" + of), Spec: clusterv1alpha1.MachineSpec{
			Versions: clusterv1alpha1.MachineVersions{Kubelet: "1.36.3"},
			ProviderSpec: clusterv1alpha1.ProviderSpec{
				Value:     clusterv1alpha1.ProviderSpecValue{OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu},
				ValueFrom: &clusterv1alpha1.ProviderSpecSource{MachineClass: clusterv1alpha1.LocalReference{Name: of}},
			},
		}}
	}
	leaving := heir("leaving")
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: meta("shared")}, &corev1.Secret{ObjectMeta: meta("own")},
		class("leaving", "shared", "own"), class("staying", "shared", "shared"), leaving, heir("staying"),
	} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	c.Manage(t, interceptor.Funcs{}, func(mgr ctrl.Manager) error {
		return Add(mgr, Options{Specs: specresolver.New(mgr.GetAPIReader(), specresolver.Options{})})
	})
	kept := func(want ...string) func() string {
		return func() string {
			var secrets corev1.SecretList
			if err := c.List(t.Context(), &secrets, client.InNamespace(c.Namespace)); err != nil {
				return err.Error()
			}
			var have []string
			for i := range secrets.Items {
				if slices.Contains(secrets.Items[i].Finalizers, clusterv1alpha1.InUseFinalizer) {
					have = append(have, secrets.Items[i].Name)
				}
			}
			if slices.Sort(have); !slices.Equal(have, want) {
				return "kept are " + strings.Join(have, ", ")
			}
			return ""
		}
	}
	c.Eventually(t, kept("own", "shared"))
	if err := c.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	c.Eventually(t, kept("shared"))
}
