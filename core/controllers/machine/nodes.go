package machine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/drain"
	"github.com/millwright-dev/millwright/core/lifecycle"
)

// nodeClient reads Nodes from a cache, or live from the API server, and writes them. With the zero
// value there are no Nodes.
type nodeClient struct {
	client.Client

	live client.Reader
	// machines is the cache of Machines.
	machines machineFinder
}

// match is the Node that fits a Machine.
type match struct {
	node *corev1.Node
	// conflict says, for people, why none can be taken.
	conflict string
	// unknownID says that the one which has joined since the Machine was made, under its name, has
	// a providerID that the driver does not vouch for. Another Machine would join like that, too.
	unknownID bool
}

// find looks for the Machine's Node: by the ids of its VM, else by addresses that nothing else has,
// else by name. A Machine without any id has no Node, whatever Node has its providerID: it has no
// VM, or its driver has not confirmed one.
func (c nodeClient) find(ctx context.Context, m *clusterv1alpha1.Machine, ids []string, nodeName string) (match, error) {
	if len(ids) == 0 || c.Client == nil {
		return match{}, nil
	}
	var found []*corev1.Node
	for _, id := range ids {
		byID, err := c.listBy(ctx, nodeProviderIDIndex, id)
		if err != nil {
			return match{}, err
		}
		found = append(found, byID...)
	}
	if len(found) > 0 {
		return c.checkNotAwaited(ctx, m, nodeName, choose(m, ids, found)), nil
	}
	named := &corev1.Node{}
	err := c.Get(ctx, client.ObjectKey{Name: nodeName}, named)
	if client.IgnoreNotFound(err) != nil {
		return match{}, fmt.Errorf("read Node %s: %w", nodeName, err)
	}
	isNamed := err == nil
	if isNamed && named.Spec.ProviderID == "" {
		// Its kubelet was told this name. An address says no more.
		return choose(m, ids, []*corev1.Node{named}), nil
	}
	node, err := c.findByAddress(ctx, m)
	switch {
	case err != nil:
		return match{}, err
	case node != nil:
		return choose(m, ids, []*corev1.Node{node}), nil
	case isNamed:
		return choose(m, ids, []*corev1.Node{named}), nil
	}
	return match{}, nil
}

// checkNotAwaited checks a Node that was found by its providerID, which its kubelet may have
// written. It returns a conflict if another Machine waits for a Node of that name. A Node that the
// Machine's status names stays.
func (c nodeClient) checkNotAwaited(ctx context.Context, m *clusterv1alpha1.Machine, nodeName string, found match) match {
	ref := m.Status.NodeRef
	if found.node == nil || found.node.Name == nodeName || ref != nil && ref.Name == found.node.Name {
		return found
	}
	name := found.node.Name
	for _, other := range c.machines.machinesWith(ctx, client.MatchingFields{machineNodeIndex: name}) {
		if other.Name == name && other.NamespacedName != client.ObjectKeyFromObject(m) {
			return match{conflict: fmt.Sprintf("Node %s has the providerID of this machine, and the name of Machine %s, which has no Node yet.", name, other)}
		}
	}
	return found
}

// findByAddress returns the one Node without a providerID that has an address of the Machine's VM;
// nil where several things have it. VMs of a private network, each behind a NAT of its own, may all
// have the same. A Node that is known to be the Machine's stays so.
func (c nodeClient) findByAddress(ctx context.Context, m *clusterv1alpha1.Machine) (*corev1.Node, error) {
	mine := addresses(m.Status.Addresses)
	var found []*corev1.Node
	for _, address := range mine {
		nodes, err := c.listBy(ctx, nodeAddressIndex, address)
		if err != nil {
			return nil, err
		}
		for _, node := range nodes {
			if node.Annotations[clusterv1alpha1.NodeMachineAnnotation] == keyOf(m) {
				return node, nil
			}
		}
		found = append(found, nodes...)
	}
	if len(found) == 0 {
		return nil, nil
	}
	node := found[0]
	isOther := func(n *corev1.Node) bool { return n.Name != node.Name }
	if slices.ContainsFunc(found, isOther) || node.Annotations[clusterv1alpha1.NodeMachineAnnotation] != "" {
		return nil, nil
	}
	// No other Machine waits for a Node of this name, or has one of the addresses.
	for _, sign := range append(mine, node.Name) {
		others := c.machines.machinesWith(ctx, client.MatchingFields{machineNodeIndex: sign})
		if slices.ContainsFunc(others, func(o reconcile.Request) bool { return o.NamespacedName != client.ObjectKeyFromObject(m) }) {
			return nil, nil
		}
	}
	return c.onlyOneWith(ctx, node, mine)
}

// onlyOneWith returns the Node, unless another one, with whatever providerID, has an address of
// these as well; nil then.
func (c nodeClient) onlyOneWith(ctx context.Context, node *corev1.Node, of []string) (*corev1.Node, error) {
	var all corev1.NodeList
	if err := c.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Nodes: %w", err)
	}
	for i := range all.Items {
		other := &all.Items[i]
		shares := slices.ContainsFunc(addresses(other.Status.Addresses), func(a string) bool { return slices.Contains(of, a) })
		if shares && other.Name != node.Name {
			return nil, nil
		}
	}
	return node, nil
}

// machinesOfAttachment returns the Machine whose Node has a volume attached, if that Machine is on
// its way out: no other looks at volumes.
func (c nodeClient) machinesOfAttachment(ctx context.Context, a *storagev1.VolumeAttachment) []reconcile.Request {
	node, machine := &corev1.Node{}, &clusterv1alpha1.Machine{}
	if err := c.Get(ctx, client.ObjectKey{Name: a.Spec.NodeName}, node); err != nil {
		return nil
	}
	owner := annotatedMachine(node)
	if err := c.machines.cache.Get(ctx, owner, machine); err != nil || machine.DeletionTimestamp.IsZero() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: owner}}
}

// listBy returns the cache's own objects: they are only read.
func (c nodeClient) listBy(ctx context.Context, index, value string) ([]*corev1.Node, error) {
	var list corev1.NodeList
	if err := c.List(ctx, &list, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Nodes: %w", err)
	}
	found := make([]*corev1.Node, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, &list.Items[i])
	}
	return found, nil
}

// findLate asks the API server for a Node of which the cache may not know yet; nil where there is
// none.
func (c nodeClient) findLate(ctx context.Context, name string) (*corev1.Node, error) {
	if c.Client == nil {
		return nil, nil
	}
	node := &corev1.Node{}
	err := c.live.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for a late Node: %w", err)
	}
	return node, nil
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
		return unknownID(m, ids, node)
	case owner == "" && isControlPlane(node):
		return match{conflict: fmt.Sprintf("Node %s is a control-plane node, and no Machine's. Annotate it with %s=%s if it is this one's.",
			node.Name, clusterv1alpha1.NodeMachineAnnotation, keyOf(m))}
	case owner == "" && id == "" && node.CreationTimestamp.Before(&m.CreationTimestamp):
		return match{conflict: fmt.Sprintf("Node %s has the machine's name or address, and was there before it.", node.Name)}
	}
	return match{node: node}
}

// unknownID is the match of a Node of the Machine's name with a providerID that is none of its
// VM's. One that was there before the Machine is another VM's; else it is taken for this one's.
func unknownID(m *clusterv1alpha1.Machine, ids []string, node *corev1.Node) match {
	if node.CreationTimestamp.Before(&m.CreationTimestamp) {
		return match{conflict: fmt.Sprintf("Node %s has the providerID %s, the machine has %s. Delete the Node if its VM is gone.",
			node.Name, node.Spec.ProviderID, ptr.Deref(m.Spec.ProviderID, ""))}
	}
	return match{unknownID: true, conflict: fmt.Sprintf("Node %s has joined with the providerID %s, and the driver knows its VM by none but %s. "+
		"Have the kubelet or the cloud controller manager write one of these; the machine waits, and is not replaced.",
		node.Name, node.Spec.ProviderID, strings.Join(ids, ", "))}
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

// takeNode takes over which Node fits the Machine.
func (s *machineScope) takeNode(found match) {
	s.node = found.node
	switch {
	case found.conflict != "":
		s.state.Node = lifecycle.Node{Match: lifecycle.NodeConflicting, Conflict: found.conflict, HasUnknownID: found.unknownID}
		return
	case found.node == nil:
		s.state.Node = lifecycle.Node{Match: lifecycle.NodeNone}
		return
	}
	s.state.Node = lifecycle.Node{
		Match: lifecycle.NodeFound, Name: s.node.Name, UID: s.node.UID, ProviderID: s.node.Spec.ProviderID,
		Ready: metav1.ConditionUnknown, Message: "it has no condition Ready",
		Synced: isSynced(s.node, s.wantedNode()), Uninitialized: isUninitialized(s.node), Info: nodeInfo(s.node),
		HasStartupTaints: slices.ContainsFunc(s.joining.startup, func(t corev1.Taint) bool { return hasTaint(s.node.Spec.Taints, taintKey(t)) }),
	}
	if c := drain.ReadyCondition(s.node); c.Type != "" {
		s.state.Node.Ready, s.state.Node.Reason, s.state.Node.Message = metav1.ConditionStatus(c.Status), c.Reason, c.Message
	}
}

// remove deletes the Node, if it still is the one that was found.
func (c nodeClient) remove(ctx context.Context, node *corev1.Node) error {
	err := c.Delete(ctx, node, client.Preconditions{UID: &node.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", node.Name, err)
	}
	return nil
}
