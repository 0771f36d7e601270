package machineset

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// resolveInherited is what a Machine of the set's template would be made from now, if it inherits
// anything and one was refused; else nil, and while nothing can be made of the template at all.
func (r *reconciler) resolveInherited(
	ctx context.Context, set *clusterv1alpha1.MachineSet, machines []clusterv1alpha1.Machine,
) (*specresolver.Effective, error) {
	spec, refused := &set.Spec.Template.Spec, false
	for i := range machines {
		refused = refused || health.IsSpecRefused(&machines[i])
	}
	if !refused || !specresolver.Inherits(spec) {
		return nil, nil
	}
	drawn, err := specresolver.Inherit(ctx, r.client, set.Namespace, spec)
	if _, is := errors.AsType[*instance.Failure](err); is {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what the template inherits: %w", err)
	}
	return &drawn, nil
}

// isSpecMended says whether the next Machine would be made from something else than this one, which
// was refused: the MachineClass or the Cluster of the template has changed. What was refused stands
// in the Machine's status.
func (o *observation) isSpecMended(m *clusterv1alpha1.Machine) bool {
	if o.drawn == nil {
		return false
	}
	was := m.Status.ProviderSpec
	return was == nil || was.CloudProvider != o.drawn.Provider || !providerspec.Equal(was.CloudProviderSpec.Raw, o.drawn.Spec)
}

// setsThatInherit returns the sets whose template inherits from a MachineClass or a Cluster.
func (r *reconciler) setsThatInherit(ctx context.Context, from client.Object) []reconcile.Request {
	sets := &clusterv1alpha1.MachineSetList{}
	if err := r.client.List(ctx, sets, client.InNamespace(from.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	_, isClass := from.(*clusterv1alpha1.MachineClass)
	var requests []reconcile.Request
	for i := range sets.Items {
		spec := &sets.Items[i].Spec.Template.Spec
		class, cluster := spec.ProviderSpec.ValueFrom, spec.ClusterRef
		if isClass && class != nil && class.MachineClass.Name == from.GetName() || !isClass && cluster != nil && cluster.Name == from.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
		}
	}
	return requests
}
