package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/drain"
	"github.com/millwright-dev/millwright/core/ownership"
)

// The indexes of the caches.
const (
	machineNodeIndex    = "machine.node"
	machineClassIndex   = "machine.class"
	machineClusterIndex = "machine.cluster"
	machineUIDIndex     = "machine.uid"
	nodeProviderIDIndex = "node.providerID"
	nodeAddressIndex    = "node.address"
)

func addIndexes(machines client.FieldIndexer) error {
	err := errors.Join(
		addIndex(machines, machineNodeIndex, &clusterv1alpha1.Machine{}, signsOfNode),
		addIndex(machines, machineUIDIndex, &clusterv1alpha1.Machine{}, func(m *clusterv1alpha1.Machine) []string {
			return []string{ptr.Deref(m.Spec.MachineUID, "")}
		}),
		addIndex(machines, machineClassIndex, &clusterv1alpha1.Machine{}, func(m *clusterv1alpha1.Machine) []string {
			return []string{ptr.Deref(m.Spec.ProviderSpec.ValueFrom, clusterv1alpha1.ProviderSpecSource{}).MachineClass.Name}
		}),
		addIndex(machines, machineClusterIndex, &clusterv1alpha1.Machine{}, func(m *clusterv1alpha1.Machine) []string {
			return []string{ptr.Deref(m.Spec.ClusterRef, clusterv1alpha1.LocalReference{}).Name}
		}),
	)
	if err != nil {
		return fmt.Errorf("index Machines: %w", err)
	}
	return nil
}

func addNodeIndexes(nodes client.FieldIndexer) error {
	err := errors.Join(
		addIndex(nodes, nodeProviderIDIndex, &corev1.Node{}, func(n *corev1.Node) []string { return []string{n.Spec.ProviderID} }),
		addIndex(nodes, nodeAddressIndex, &corev1.Node{}, addressesOfNodeWithoutID),
		addIndex(nodes, drain.AttachmentIndex, &storagev1.VolumeAttachment{}, drain.NodeOfAttachment),
	)
	if err != nil {
		return fmt.Errorf("index Nodes and VolumeAttachments: %w", err)
	}
	return nil
}

// addIndex indexes objects by all values but empty ones.
func addIndex[T client.Object](of client.FieldIndexer, name string, object T, values func(T) []string) error {
	return of.IndexField(context.Background(), object, name, func(o client.Object) []string {
		return slices.DeleteFunc(values(o.(T)), func(value string) bool { return value == "" }) //nolint:forcetypeassert // the index is of these
	})
}

// signsOfNode are names, addresses and providerIDs by which a Node can be told to be the Machine's.
// A Machine that has a Node is named by that one's annotation: only its ids are indexed, by which
// another Node could claim to be its own. Index entries are a fifth of what a Machine costs in the
// cache.
func signsOfNode(m *clusterv1alpha1.Machine) []string {
	var signs []string
	if m.Status.NodeRef == nil {
		signs = append([]string{m.Name}, addresses(m.Status.Addresses)...)
	}
	for _, id := range append([]string{ptr.Deref(m.Spec.ProviderID, ""), m.Status.ProviderID}, m.Status.ProviderIDAliases...) {
		if !slices.Contains(signs, id) {
			signs = append(signs, id)
		}
	}
	return signs
}

// addressesOfNodeWithoutID are the addresses of a Node that has no providerID: nodeClient.find
// looks for no other Node by its addresses.
func addressesOfNodeWithoutID(node *corev1.Node) []string {
	if node.Spec.ProviderID != "" {
		return nil
	}
	return addresses(node.Status.Addresses)
}

// addresses are those by which a Node and a Machine can be told to be one. Host names are none:
// they are the last resort, as names.
func addresses(all []corev1.NodeAddress) []string {
	var found []string
	for _, a := range all {
		if a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP {
			found = append(found, a.Address)
		}
	}
	return found
}

// machineFinder finds the Machines to be reconciled for another object, in the cache of Machines.
type machineFinder struct {
	cache    client.Reader
	machines ownership.Machines
}

// machinesWith returns the Machines that options choose. The cache has everything, or the manager
// is about to end.
func (f machineFinder) machinesWith(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	var machines clusterv1alpha1.MachineList
	if err := f.cache.List(ctx, &machines, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(machines.Items))
	for i := range machines.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&machines.Items[i])})
	}
	return requests
}

// machinesOf returns the Machines that a Node may belong to.
func (f machineFinder) machinesOf(ctx context.Context, node *corev1.Node) []reconcile.Request {
	var requests []reconcile.Request
	if owner := annotatedMachine(node); owner != (client.ObjectKey{}) {
		requests = append(requests, reconcile.Request{NamespacedName: owner})
	}
	signs := append([]string{node.Name}, addresses(node.Status.Addresses)...)
	if node.Spec.ProviderID != "" {
		signs = append(signs, node.Spec.ProviderID)
	}
	for _, sign := range signs {
		requests = append(requests, f.machinesWith(ctx, client.MatchingFields{machineNodeIndex: sign})...)
	}
	return requests
}

// annotatedMachine is the Machine that the Node's annotation names; the zero value where it names
// none.
func annotatedMachine(node *corev1.Node) client.ObjectKey {
	namespace, name, _ := strings.Cut(node.Annotations[clusterv1alpha1.NodeMachineAnnotation], "/")
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// machinesIn returns the Machines of a set, or none if the manager is about to end.
func (f machineFinder) machinesIn(ctx context.Context, set client.Object) []reconcile.Request {
	machines, err := f.machines.Of(ctx, set.GetNamespace(), string(set.GetUID()))
	if err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(machines))
	for _, m := range machines {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
	}
	return requests
}

// machinesThatInherit returns the Machines that inherit from a MachineClass or name a Cluster.
func (f machineFinder) machinesThatInherit(index string) handler.MapFunc {
	return func(ctx context.Context, from client.Object) []reconcile.Request {
		return f.machinesWith(ctx, client.InNamespace(from.GetNamespace()), client.MatchingFields{index: from.GetName()})
	}
}

// nodeChanged passes what matters to a Machine: Nodes report far more often than that.
func nodeChanged() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
			was, is := e.ObjectOld, e.ObjectNew
			return was.UID != is.UID || was.Spec.ProviderID != is.Spec.ProviderID || !maps.Equal(was.Labels, is.Labels) ||
				!maps.Equal(was.Annotations, is.Annotations) || !sameTaints(was.Spec.Taints, is.Spec.Taints) ||
				readiness(was) != readiness(is) || nodeInfo(was) != nodeInfo(is) || !slices.Equal(addresses(was.Status.Addresses), addresses(is.Status.Addresses))
		},
	}
}

// attachmentChanged passes what a Machine that waits for its volumes shows: they go, or cannot.
func attachmentChanged() predicate.TypedPredicate[*storagev1.VolumeAttachment] {
	failure := func(a *storagev1.VolumeAttachment) string {
		return ptr.Deref(a.Status.DetachError, storagev1.VolumeError{}).Message
	}
	return predicate.TypedFuncs[*storagev1.VolumeAttachment]{
		CreateFunc: func(event.TypedCreateEvent[*storagev1.VolumeAttachment]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*storagev1.VolumeAttachment]) bool {
			return failure(e.ObjectOld) != failure(e.ObjectNew)
		},
	}
}

// readiness is the part of the Node's condition Ready that Machines show. Its message is not: a
// kubelet may change it with each heartbeat.
func readiness(node *corev1.Node) corev1.NodeCondition {
	ready := drain.ReadyCondition(node)
	return corev1.NodeCondition{Status: ready.Status, Reason: ready.Reason}
}

// rolloutChanged passes what of a set its Machines' Nodes show.
func rolloutChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
			return was[clusterv1alpha1.RolloutAnnotation] != is[clusterv1alpha1.RolloutAnnotation] ||
				was[clusterv1alpha1.HoldScaleDownAnnotation] != is[clusterv1alpha1.HoldScaleDownAnnotation]
		},
	}
}

// pauseChanged passes a Cluster that is paused, or goes on.
func pauseChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return annotations.IsPaused(e.ObjectOld) != annotations.IsPaused(e.ObjectNew)
		},
	}
}
