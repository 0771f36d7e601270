// Package blueprint says what a machine is to be made from, by its own spec and by the MachineClass and the Cluster that it
// names, and whether it may be: secrets only where the driver expects them, and sent only where the operator allows it.
package blueprint

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
)

// Blueprint is what a machine is to be made from.
type Blueprint struct {
	// Provider is the name of its driver.
	Provider string
	// Spec is its cloudProviderSpec, with all that it inherits and with its references.
	Spec []byte
	// Own is the part of Spec that the machine brings itself.
	Own []byte
	// Credentials are Secrets that the driver gets as a whole. Later ones win.
	Credentials []clusterv1alpha1.SecretReference
}

// Inherits says whether a spec has anything to inherit.
func Inherits(spec *clusterv1alpha1.MachineSpec) bool {
	return spec.ProviderSpec.ValueFrom != nil || spec.ClusterRef != nil
}

// Draw puts together what a machine of this spec is made from: what its Cluster says, over it its class, over it its own.
// Errors of type *instance.Failure are what a Machine shows; others are the reader's, and pass. A Blueprint that comes with
// a failure holds what is known.
func Draw(ctx context.Context, reader client.Reader, namespace string, spec *clusterv1alpha1.MachineSpec) (Blueprint, error) {
	value := spec.ProviderSpec.Value
	b := Blueprint{Provider: value.CloudProvider, Spec: value.CloudProviderSpec.Raw, Own: value.CloudProviderSpec.Raw}
	if !Inherits(spec) {
		return b, nil
	}
	layers := [3][]byte{2: b.Own}
	var fromClass []clusterv1alpha1.SecretReference
	if from := spec.ProviderSpec.ValueFrom; from != nil {
		class := &clusterv1alpha1.MachineClass{}
		err := get(ctx, reader, namespace, from.MachineClass.Name, class)
		if err != nil {
			return b, notFound(err, clusterv1alpha1.ReasonMachineClassNotFound, "MachineClass", types.NamespacedName{Namespace: namespace, Name: from.MachineClass.Name})
		}
		if b.Provider != "" && b.Provider != class.Provider {
			return b, invalid(fmt.Sprintf("cloudProvider is %q, and MachineClass %s is for %q: leave cloudProvider out, or name another class",
				b.Provider, class.Name, class.Provider))
		}
		b.Provider, layers[1] = class.Provider, class.ProviderSpec.Raw
		fromClass = refs(class.SecretRef, class.CredentialsSecretRef)
	}
	if spec.ClusterRef != nil {
		cluster := &clusterv1alpha1.Cluster{}
		if err := get(ctx, reader, namespace, spec.ClusterRef.Name, cluster); err != nil {
			return b, notFound(err, clusterv1alpha1.ReasonClusterNotFound, "Cluster", types.NamespacedName{Namespace: namespace, Name: spec.ClusterRef.Name})
		}
		common := cluster.Spec.ProviderSpec
		if common == nil || common.Value.CloudProvider == b.Provider {
			b.Credentials = refs(cluster.Spec.CredentialsSecretRef)
		}
		if common != nil && common.Value.CloudProvider == b.Provider {
			layers[0] = common.Value.CloudProviderSpec.Raw
		}
	}
	b.Credentials = append(b.Credentials, fromClass...)
	merged, err := providerspec.Merge(layers[:]...)
	if err != nil {
		return b, invalid(err.Error())
	}
	b.Spec = merged
	return b, nil
}

func get(ctx context.Context, reader client.Reader, namespace, name string, into client.Object) error {
	return reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
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

func refs(all ...*clusterv1alpha1.SecretReference) []clusterv1alpha1.SecretReference {
	var found []clusterv1alpha1.SecretReference
	for _, ref := range all {
		if ref != nil {
			found = append(found, *ref)
		}
	}
	return found
}
