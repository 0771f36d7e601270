package inuse

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

func TestMain(m *testing.M) { os.Exit(controllertest.Run(m)) }

// Secrets that an earlier version has protected lose its finalizer, whether their class is in use
// or not.
func TestAPI5_SecretsOfAnEarlierVersionAreReleased(t *testing.T) {
	c := controllertest.New(t)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: c.Namespace, Name: name} }
	secret := &corev1.Secret{ObjectMeta: meta("cloud")}
	secret.Finalizers = []string{clusterv1alpha1.InUseFinalizer, "example.com/other"}
	class := &clusterv1alpha1.MachineClass{
		ObjectMeta: meta("small"), Provider: "test", ProviderSpec: runtime.RawExtension{Raw: []byte(`{}`)},
		CredentialsSecretRef: &clusterv1alpha1.SecretReference{Name: "cloud"},
	}
	dependent := &clusterv1alpha1.Machine{ObjectMeta: meta("dependent"), Spec: clusterv1alpha1.MachineSpec{
		Versions: clusterv1alpha1.MachineVersions{Kubelet: "1.36.3"},
		ProviderSpec: clusterv1alpha1.ProviderSpec{
			Value:     clusterv1alpha1.ProviderSpecValue{OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu},
			ValueFrom: &clusterv1alpha1.ProviderSpecSource{MachineClass: clusterv1alpha1.LocalReference{Name: "small"}},
		},
	}}
	for _, o := range []client.Object{secret, class, dependent} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	class.Status.ProtectedSecrets = []clusterv1alpha1.SecretReference{{Name: "cloud"}, {Name: "gone"}}
	if err := c.Status().Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	c.Manage(t, interceptor.Funcs{}, Add)
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			return err.Error()
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
			return err.Error()
		}
		if len(secret.Finalizers) != 1 || len(class.Status.ProtectedSecrets) > 0 || len(class.Finalizers) != 1 {
			return "the Secret has the finalizers " + secret.Finalizers[0]
		}
		return ""
	})
}
