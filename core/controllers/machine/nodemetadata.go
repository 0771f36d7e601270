package machine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/ownership"
)

// nodeMetadata is what a Machine wants on its Node.
type nodeMetadata struct {
	labels, annotations map[string]string
	taints              []corev1.Taint
	providerID          string
	// held: a rollout goes on, in which cluster-autoscaler is to leave the Node alone.
	held bool
}

// nodeMetadataOf is what a Machine wants on its Node, given what its set's RolloutAnnotation says.
func nodeMetadataOf(m *clusterv1alpha1.Machine, rollout string) nodeMetadata {
	d := nodeMetadata{
		labels: nodeLabels(m), annotations: nodeAnnotations(m), providerID: providerID(m),
		held: rollout == clusterv1alpha1.RolloutOutdated || rollout == clusterv1alpha1.RolloutCurrent,
	}
	for _, t := range m.Spec.Taints {
		d.taints = append(d.taints, t.NodeTaint())
	}
	if rollout == clusterv1alpha1.RolloutOutdated {
		d.taints = append(d.taints, corev1.Taint{Key: clusterv1alpha1.OutdatedTaint, Effect: corev1.TaintEffectPreferNoSchedule})
	}
	return d
}

// nodeLabels are the labels of the Node: the Machine's, and over them those for the Node.
func nodeLabels(m *clusterv1alpha1.Machine) map[string]string {
	labels := maps.Clone(m.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, m.Spec.Metadata.Labels)
	return labels
}

// nodeAnnotations are the annotations of the Node. Two of them never come from a template: the note
// about what is ours, and the order to delete the machine, which each replacement would obey at
// once.
func nodeAnnotations(m *clusterv1alpha1.Machine) map[string]string {
	annotations := map[string]string{}
	maps.Copy(annotations, m.Spec.Metadata.Annotations)
	delete(annotations, clusterv1alpha1.ManagedAnnotation)
	delete(annotations, clusterv1alpha1.DeleteNowAnnotation)
	annotations[clusterv1alpha1.NodeMachineAnnotation] = keyOf(m)
	return annotations
}

// isApplied says whether the Node has everything that is wanted, and nothing that was ours and is
// wanted no more.
func (d nodeMetadata) isApplied(node *corev1.Node) bool {
	wanted := d.on(node)
	return node.Spec.ProviderID == wanted.Spec.ProviderID && sameTaints(node.Spec.Taints, wanted.Spec.Taints) &&
		maps.Equal(node.Labels, wanted.Labels) && maps.Equal(node.Annotations, wanted.Annotations)
}

// on returns the Node as it should be. It shares with node what does not differ.
func (d nodeMetadata) on(node *corev1.Node) *corev1.Node {
	wanted := *node
	wanted.Spec.ProviderID = d.providerID
	annotations, was := d.annotations, ownership.ReadManaged(node)
	if d.holds(node, was) {
		annotations = maps.Clone(annotations)
		annotations[clusterv1alpha1.ScaleDownDisabledAnnotation] = "true"
	}
	ownership.SyncMetadata(&wanted, d.labels, annotations)
	wanted.Spec.Taints = d.taintsOn(node.Spec.Taints, was.Taints)
	ours := make([]string, 0, len(d.taints))
	for _, t := range d.taints {
		ours = append(ours, taintKey(t))
	}
	slices.Sort(ours)
	if ours = slices.Compact(ours); !slices.Equal(ours, was.Taints) {
		recordAppliedSpec := ownership.ReadManaged(&wanted)
		recordAppliedSpec.Taints = ours
		recordAppliedSpec.Write(&wanted)
	}
	return &wanted
}

// holds says whether the Node is to carry our ScaleDownDisabledAnnotation. One that somebody else
// has set, in whatever way, is his.
func (d nodeMetadata) holds(node *corev1.Node, was ownership.Managed) bool {
	_, there := node.Annotations[clusterv1alpha1.ScaleDownDisabledAnnotation]
	_, templated := d.annotations[clusterv1alpha1.ScaleDownDisabledAnnotation]
	foreign := there && !slices.Contains(was.Annotations, clusterv1alpha1.ScaleDownDisabledAnnotation)
	return d.held && !templated && !foreign
}

// taintsOn merges three-way: wanted taints are there, those that are only ours are not, others
// stay, in their order.
func (d nodeMetadata) taintsOn(have []corev1.Taint, ours []string) []corev1.Taint {
	var merged []corev1.Taint
	for _, t := range have {
		key := taintKey(t)
		at := slices.IndexFunc(d.taints, func(w corev1.Taint) bool { return taintKey(w) == key })
		switch {
		case at >= 0 && d.taints[at].Value != t.Value:
			merged = append(merged, d.taints[at])
		case at >= 0 || !slices.Contains(ours, key):
			merged = append(merged, t)
		}
	}
	for _, w := range d.taints {
		if !slices.ContainsFunc(merged, func(t corev1.Taint) bool { return taintKey(t) == taintKey(w) }) {
			merged = append(merged, w)
		}
	}
	return merged
}

// taintKey is what tells the taints of a Node apart.
func taintKey(t corev1.Taint) string {
	return t.Key + ":" + string(t.Effect)
}

// sameTaints says whether a and b keep the same pods away; since when does not matter.
func sameTaints(a, b []corev1.Taint) bool {
	return slices.EqualFunc(a, b, func(a, b corev1.Taint) bool {
		return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
	})
}

// applyNodeMetadata brings the Node, in one write, up to what core wants on it.
func (r *reconciler) applyNodeMetadata(ctx context.Context, node *corev1.Node, d nodeMetadata) (*corev1.Node, error) {
	annotatedNode := d.on(node).DeepCopy()
	patch := client.MergeFrom(node)
	if !sameTaints(node.Spec.Taints, annotatedNode.Spec.Taints) {
		// A merge patch replaces the whole list; others change it, too.
		patch = client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})
	}
	if err := r.nodes.Patch(ctx, annotatedNode, patch); err != nil {
		return nil, fmt.Errorf("claim node %s: %w", node.Name, err)
	}
	return annotatedNode, nil
}

// rolloutOf is what the RolloutAnnotation of the Machine's set says; empty without a set.
func (r *reconciler) rolloutOf(ctx context.Context, m *clusterv1alpha1.Machine) (string, error) {
	owner := ownership.ControllerOf(m, clusterv1alpha1.MachineSetKind)
	if owner == nil {
		return "", nil
	}
	set := &clusterv1alpha1.MachineSet{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: owner.Name}, set, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && set.UID != owner.UID {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the Machine's set: %w", err)
	}
	return set.Annotations[clusterv1alpha1.RolloutAnnotation], nil
}

// machinesIn returns the Machines of a set.
func (r *reconciler) machinesIn(ctx context.Context, set client.Object) []reconcile.Request {
	var machines clusterv1alpha1.MachineList
	if err := r.client.List(ctx, &machines, client.InNamespace(set.GetNamespace()),
		client.MatchingFields{ownership.Index: string(set.GetUID())}, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(machines.Items))
	for i := range machines.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{
			Namespace: machines.Items[i].Namespace, Name: machines.Items[i].Name,
		}})
	}
	return requests
}

// rolloutChanged passes the one thing of a set that its Machines' Nodes show.
func rolloutChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			const rollout = clusterv1alpha1.RolloutAnnotation
			return e.ObjectOld.GetAnnotations()[rollout] != e.ObjectNew.GetAnnotations()[rollout]
		},
	}
}
