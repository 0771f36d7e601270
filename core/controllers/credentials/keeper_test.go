package credentials

import (
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/providerspec"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// Copies follow what the Machines' class names. One that may still be needed stays: a class that
// names a Secret which is not there has its machines made with nothing else.
func TestOPS11_CopiesFollowTheirMachines(t *testing.T) {
	r := newRig(t)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: r.Namespace, Name: name} }
	class := &clusterv1alpha1.MachineClass{
		ObjectMeta: meta("small"), Provider: "test", ProviderSpec: runtime.RawExtension{Raw: []byte(`{}`)},
		SecretRef: &clusterv1alpha1.SecretReference{Name: "cloud"},
	}
	machine := &clusterv1alpha1.Machine{ObjectMeta: meta("m"), Spec: clusterv1alpha1.MachineSpec{
		Versions: clusterv1alpha1.MachineVersions{Kubelet: "1.36.3"},
		ProviderSpec: clusterv1alpha1.ProviderSpec{
			Value:     clusterv1alpha1.ProviderSpecValue{OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu},
			ValueFrom: &clusterv1alpha1.ProviderSpecSource{MachineClass: clusterv1alpha1.LocalReference{Name: "small"}},
		},
	}}
	secret := r.secret()
	for _, o := range []client.Object{secret, class, machine} {
		r.do(r.Create(t.Context(), o))
	}
	var looks atomic.Int64
	r.Manage(t, interceptor.Funcs{}, func(mgr ctrl.Manager) error {
		schema := func(string) (*providerspec.Schema, error) {
			looks.Add(1)
			return providerspec.NoSchema("there is none"), nil
		}
		return Add(mgr, Options{Specs: r.specs, Schema: schema, Interval: 20 * time.Millisecond})
	})
	// await waits until just these Secrets have copies, with these values.
	await := func(what string, want map[string]string) {
		t.Helper()
		t.Log(what)
		r.Eventually(t, func() string {
			r.later()
			var all corev1.SecretList
			if err := r.List(t.Context(), &all, client.InNamespace(specresolver.CopiesNamespace)); err != nil {
				return err.Error()
			}
			found := 0
			for _, s := range all.Items {
				if s.Annotations["cluster.k8s.io/copied-namespace"] != r.Namespace {
					continue
				}
				name := s.Annotations["cluster.k8s.io/copied-name"]
				if value, has := want[name]; !has || value != string(s.Data["key"]) {
					return "there is a copy of " + name + ", which says " + string(s.Data["key"])
				}
				found++
			}
			if found != len(want) {
				return "there are too few copies"
			}
			return ""
		})
	}
	await("a Machine with which nothing was begun needs none", nil)
	machine.Status.LastOperation = &clusterv1alpha1.LastOperation{
		Type: clusterv1alpha1.OperationCreate, State: clusterv1alpha1.OperationProcessing, LastUpdateTime: metav1.Now(),
	}
	r.do(r.Status().Update(t.Context(), machine))
	await("one that may have a VM", map[string]string{"cloud": "first"})

	secret.Data["key"] = []byte("second")
	r.do(r.Update(t.Context(), secret))
	await("its Secret is rotated", map[string]string{"cloud": "second"})

	class.SecretRef.Name = "next"
	r.do(r.Update(t.Context(), class))
	before := looks.Load()
	r.Eventually(t, func() string {
		if looks.Load() < before+3 {
			return "nobody has looked since"
		}
		return ""
	})
	await("its class names a Secret that is not there", map[string]string{"cloud": "second"})
	next := r.secret()
	next.Name = "next"
	r.do(r.Create(t.Context(), next))
	await("that is there", map[string]string{"next": "first"})

	r.do(r.Delete(t.Context(), next))
	r.do(r.Delete(t.Context(), machine))
	await("the Machine is gone", nil)
}
