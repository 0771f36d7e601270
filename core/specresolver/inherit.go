package specresolver

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
)

// Effective is what a machine is to be made from. Nobody has checked it yet.
type Effective struct {
	// Namespace is the machine's.
	Namespace string
	// Provider is the name of its driver.
	Provider string
	// Spec is its cloudProviderSpec, with all that it inherits and with its references.
	Spec []byte
	// Own is the part of Spec that the machine brings itself.
	Own []byte
	// Credentials are Secrets that the driver gets as a whole. Later ones win.
	Credentials []clusterv1alpha1.SecretReference
	// OfClass are those Credentials that come from its MachineClass.
	OfClass []clusterv1alpha1.SecretReference
	// MayExist: there may be a VM of the machine. A Secret that cannot be read any more then comes
	// from the copy that was kept of it. The copy serves to look at the VM and to delete it.
	MayExist bool
}

// Written returns e with the provider and the spec that a Machine's status holds. applied is nil
// where it holds none; then e stays as it is.
func (e Effective) Written(applied *clusterv1alpha1.AppliedProviderSpec) Effective {
	if applied != nil {
		e.Provider, e.Spec = applied.CloudProvider, applied.CloudProviderSpec.Raw
	}
	return e
}

// secrets are the Secrets that the spec, which was read as spec, refers to, each once.
func (e Effective) secrets(spec providerspec.Spec) []types.NamespacedName {
	var all []types.NamespacedName
	add := func(namespace, name string) {
		secret := types.NamespacedName{Namespace: within(e.Namespace, namespace), Name: name}
		if !slices.Contains(all, secret) {
			all = append(all, secret)
		}
	}
	for _, ref := range e.Credentials {
		add(ref.Namespace, ref.Name)
	}
	for _, ref := range spec.References {
		if ref.Kind == providerspec.Secret {
			add(ref.Namespace, ref.Name)
		}
	}
	return all
}

// Inherits says whether a spec has anything to inherit.
func Inherits(spec *clusterv1alpha1.MachineSpec) bool {
	return spec.ProviderSpec.ValueFrom != nil || spec.ClusterRef != nil
}

// Inherit puts together what a machine of this spec is made from. The Cluster's spec is at the
// bottom, that of the class lies over it, and the machine's own over both. It reads no Secret.
//
// An error of type *instance.Failure is what a Machine shows. Any other is the reader's, and
// passes. An Effective that comes with a failure holds what is known.
func Inherit(ctx context.Context, objects client.Reader, namespace string, spec *clusterv1alpha1.MachineSpec) (Effective, error) {
	value := spec.ProviderSpec.Value
	e := Effective{
		Namespace: namespace, Provider: value.CloudProvider, Spec: value.CloudProviderSpec.Raw, Own: value.CloudProviderSpec.Raw,
	}
	if !Inherits(spec) {
		return e, nil
	}
	layers := [3][]byte{2: e.Own}
	var fromClass []clusterv1alpha1.SecretReference
	if from := spec.ProviderSpec.ValueFrom; from != nil {
		class := &clusterv1alpha1.MachineClass{}
		name := types.NamespacedName{Namespace: namespace, Name: from.MachineClass.Name}
		if err := objects.Get(ctx, name, class); err != nil {
			return e, notFound(err, clusterv1alpha1.ReasonMachineClassNotFound, "MachineClass", name)
		}
		if e.Provider != "" && e.Provider != class.Provider {
			return e, invalid(fmt.Sprintf("cloudProvider is %q, and MachineClass %s is for %q: leave cloudProvider out, or name another class",
				e.Provider, class.Name, class.Provider))
		}
		e.Provider, layers[1] = class.Provider, class.ProviderSpec.Raw
		fromClass = present(class.SecretRef, class.CredentialsSecretRef)
	}
	if spec.ClusterRef != nil {
		cluster := &clusterv1alpha1.Cluster{}
		name := types.NamespacedName{Namespace: namespace, Name: spec.ClusterRef.Name}
		if err := objects.Get(ctx, name, cluster); err != nil {
			return e, notFound(err, clusterv1alpha1.ReasonClusterNotFound, "Cluster", name)
		}
		common := cluster.Spec.ProviderSpec
		if common == nil || common.Value.CloudProvider == e.Provider {
			e.Credentials = present(cluster.Spec.CredentialsSecretRef)
		}
		if common != nil && common.Value.CloudProvider == e.Provider {
			layers[0] = common.Value.CloudProviderSpec.Raw
		}
	}
	e.Credentials, e.OfClass = append(e.Credentials, fromClass...), fromClass
	merged, err := providerspec.Merge(layers[:]...)
	if err != nil {
		return e, invalid(err.Error())
	}
	e.Spec = merged
	return e, nil
}

// notFound words why something that is inherited from cannot be read.
func notFound(err error, reason, kind string, name types.NamespacedName) error {
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	return &instance.Failure{
		Class: instance.Precondition, Reason: reason,
		Message: fmt.Sprintf("There is no %s %s in namespace %s.", kind, name.Name, name.Namespace),
	}
}

// invalid is the failure of a spec that cannot be made anything of.
func invalid(message string, fields ...instance.Field) *instance.Failure {
	return &instance.Failure{
		Class: instance.SpecInvalid, Reason: clusterv1alpha1.ReasonSpecInvalid, Message: message, Fields: fields,
	}
}

// present returns those references that there are.
func present(all ...*clusterv1alpha1.SecretReference) []clusterv1alpha1.SecretReference {
	var found []clusterv1alpha1.SecretReference
	for _, ref := range all {
		if ref != nil {
			found = append(found, *ref)
		}
	}
	return found
}
