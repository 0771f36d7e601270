package machine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/lifecycle"
)

// match is the Node that fits a Machine.
type match struct {
	node *corev1.Node
	// conflict says, for people, why none can be taken.
	conflict string
}

// observeNodeOf finds the Machine's Node. A Machine whose providerID the driver has not confirmed
// has none, whatever Node has that id.
func (r *reconciler) observeNodeOf(ctx context.Context, s *machineScope) (match, error) {
	return r.findNode(ctx, s.machine, s.state.KnownIDs(), s.nodeName())
}

// findNode looks for the Machine's Node: by the ids of its VM, else by addresses, else by name. A
// Machine without any id has no VM that could have registered one.
func (r *reconciler) findNode(ctx context.Context, m *clusterv1alpha1.Machine, ids []string, nodeName string) (match, error) {
	if len(ids) == 0 {
		return match{}, nil
	}
	var found []*corev1.Node
	for _, id := range ids {
		byID, err := r.listNodes(ctx, nodeProviderIDIndex, id)
		if err != nil {
			return match{}, err
		}
		found = append(found, byID...)
	}
	if len(found) > 0 {
		return choose(m, ids, found), nil
	}
	for _, address := range addresses(m.Status.Addresses) {
		byAddress, err := r.listNodes(ctx, nodeAddressIndex, address)
		if err != nil {
			return match{}, err
		}
		found = append(found, byAddress...)
	}
	if len(found) > 0 {
		return choose(m, ids, found), nil
	}
	node := &corev1.Node{}
	if err := r.nodes.Get(ctx, client.ObjectKey{Name: nodeName}, node); err != nil {
		return match{}, client.IgnoreNotFound(err)
	}
	return choose(m, ids, []*corev1.Node{node}), nil
}

// listNodes returns the cache's own objects: they are only read.
func (r *reconciler) listNodes(ctx context.Context, index, value string) ([]*corev1.Node, error) {
	var list corev1.NodeList
	if err := r.nodes.List(ctx, &list, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Nodes: %w", err)
	}
	found := make([]*corev1.Node, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, &list.Items[i])
	}
	return found, nil
}

// choose takes the one Node that fits a Machine whose VM has these ids, unless it is another
// Machine's. Of a machine that is going it takes the one that it had claimed, whoever else
// registered since: there are pods on it.
func choose(m *clusterv1alpha1.Machine, ids []string, found []*corev1.Node) match {
	names := map[string]*corev1.Node{}
	for _, n := range found {
		names[n.Name] = n
	}
	if len(names) > 1 {
		if mine := annotatedNode(m, ids, names); mine != nil && !m.DeletionTimestamp.IsZero() {
			return match{node: mine}
		}
		all := slices.Sorted(maps.Keys(names))
		return match{conflict: fmt.Sprintf("Several Nodes fit this machine: %s.", strings.Join(all, ", "))}
	}
	node := found[0]
	owner, id := node.Annotations[clusterv1alpha1.NodeMachineAnnotation], node.Spec.ProviderID
	switch {
	case owner != "" && owner != keyOf(m):
		return match{conflict: fmt.Sprintf("Node %s is that of Machine %s.", node.Name, owner)}
	case id != "" && !slices.Contains(ids, id):
		return match{conflict: fmt.Sprintf("Node %s has the providerID %s, the machine has %s. Delete the Node if its VM is gone.",
			node.Name, id, providerID(m))}
	case owner == "" && isControlPlane(node):
		return match{conflict: fmt.Sprintf("Node %s is a control-plane node, and no Machine's. Annotate it with %s=%s if it is this one's.",
			node.Name, clusterv1alpha1.NodeMachineAnnotation, keyOf(m))}
	case owner == "" && id == "" && node.CreationTimestamp.Before(&m.CreationTimestamp):
		return match{conflict: fmt.Sprintf("Node %s has the machine's name or address, and was there before it.", node.Name)}
	}
	return match{node: node}
}

// isControlPlane says whether the Node is one that Machines do not have unless an administrator
// says so. A driver that was made to claim its providerID could have it deleted.
func isControlPlane(node *corev1.Node) bool {
	_, labeled := node.Labels["node-role.kubernetes.io/control-plane"]
	return labeled
}

// annotatedNode returns the one Node that is known to be the Machine's; nil when there is none, or
// several.
func annotatedNode(m *clusterv1alpha1.Machine, ids []string, nodes map[string]*corev1.Node) *corev1.Node {
	var mine *corev1.Node
	for _, n := range nodes {
		if n.Annotations[clusterv1alpha1.NodeMachineAnnotation] != keyOf(m) || !slices.Contains(ids, n.Spec.ProviderID) {
			continue
		}
		if mine != nil {
			return nil
		}
		mine = n
	}
	return mine
}

// keyOf is the Machine as the annotation on its Node names it.
func keyOf(m *clusterv1alpha1.Machine) string {
	return m.Namespace + "/" + m.Name
}

// describe is the match in lifecycle's terms.
func (n match) describe(d nodeMetadata) lifecycle.Node {
	if n.conflict != "" {
		return lifecycle.Node{Match: lifecycle.NodeConflicting, Conflict: n.conflict}
	}
	if n.node == nil {
		return lifecycle.Node{Match: lifecycle.NodeNone}
	}
	found := lifecycle.Node{
		Match: lifecycle.NodeFound, Name: n.node.Name, UID: n.node.UID, ProviderID: n.node.Spec.ProviderID, Ready: metav1.ConditionUnknown, Message: "it has no condition Ready",
		Synced: d.isApplied(n.node),
	}
	for _, c := range n.node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			found.Ready, found.Reason, found.Message = metav1.ConditionStatus(c.Status), c.Reason, c.Message
		}
	}
	return found
}

// removeNode deletes the Node, if it still is the one that was found.
func (r *reconciler) removeNode(ctx context.Context, node *corev1.Node) error {
	err := r.nodes.Delete(ctx, node, client.Preconditions{UID: &node.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", node.Name, err)
	}
	return nil
}

// machinesOf returns the Machines that a Node may belong to.
func (r *reconciler) machinesOf(ctx context.Context, node *corev1.Node) []reconcile.Request {
	keys := map[types.NamespacedName]struct{}{}
	if owner := node.Annotations[clusterv1alpha1.NodeMachineAnnotation]; owner != "" {
		namespace, name, _ := strings.Cut(owner, "/")
		keys[types.NamespacedName{Namespace: namespace, Name: name}] = struct{}{}
	}
	signs := append([]string{node.Name}, addresses(node.Status.Addresses)...)
	for _, sign := range append(signs, present(node.Spec.ProviderID)...) {
		var machines clusterv1alpha1.MachineList
		if err := r.client.List(ctx, &machines, client.MatchingFields{machineNodeIndex: sign}, client.UnsafeDisableDeepCopy); err != nil {
			continue
		}
		for i := range machines.Items {
			keys[client.ObjectKeyFromObject(&machines.Items[i])] = struct{}{}
		}
	}
	requests := make([]reconcile.Request, 0, len(keys))
	for key := range keys {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}

// nodeChanged passes what matters to a Machine: Nodes report far more often than that.
func nodeChanged() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
			was, is := e.ObjectOld, e.ObjectNew
			return was.UID != is.UID || was.Spec.ProviderID != is.Spec.ProviderID || !maps.Equal(was.Labels, is.Labels) ||
				!maps.Equal(was.Annotations, is.Annotations) || !sameTaints(was.Spec.Taints, is.Spec.Taints) ||
				readiness(was) != readiness(is) || !slices.Equal(addresses(was.Status.Addresses), addresses(is.Status.Addresses))
		},
	}
}

// readiness is the part of the Node's condition Ready that Machines show. Its message is not: a
// kubelet may change it with each heartbeat.
func readiness(node *corev1.Node) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return corev1.NodeCondition{Status: c.Status, Reason: c.Reason}
		}
	}
	return corev1.NodeCondition{}
}
