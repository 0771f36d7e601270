package machine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/core/ownership"
)

// nodeMetadata is what a Machine wants on its Node.
type nodeMetadata struct {
	labels, annotations map[string]string
	taints              []corev1.Taint
	providerID          string
	rollout             nodeRollout
}

// nodeRollout is what a rollout wants of a Node.
type nodeRollout struct {
	// outdated: the Machine is being replaced, and new pods are to avoid its Node.
	outdated bool
	// holdScaleDown: cluster-autoscaler is to leave the Node alone.
	holdScaleDown bool
	// pending is when an outdated Node is to be marked; zero once that has come. Many Nodes are
	// gone by then, which saves a write each.
	pending time.Time
}

// outdatedTaint is on Nodes of Machines that are being replaced.
var outdatedTaint = corev1.Taint{Key: clusterv1alpha1.OutdatedTaint, Effect: corev1.TaintEffectPreferNoSchedule}

// nodeMetadataOf is what a Machine wants on its Node.
func nodeMetadataOf(m *clusterv1alpha1.Machine, rollout nodeRollout) nodeMetadata {
	d := nodeMetadata{labels: bootstrap.NodeLabels(m), annotations: nodeAnnotations(m), providerID: providerID(m), rollout: rollout}
	for _, t := range m.Spec.Taints {
		d.taints = append(d.taints, t.NodeTaint())
	}
	return d
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
	taints := d.taints
	if d.rollout.outdated && (d.rollout.pending.IsZero() || slices.Contains(was.Taints, taintKey(outdatedTaint))) {
		taints = append(slices.Clip(taints), outdatedTaint)
	}
	if d.needsHold(node, was) {
		annotations = maps.Clone(annotations)
		annotations[clusterv1alpha1.ScaleDownDisabledAnnotation] = "true"
	}
	ownership.SyncMetadata(&wanted, d.labels, annotations)
	wanted.Spec.Taints = mergeTaints(node.Spec.Taints, taints, was.Taints)
	ours := make([]string, 0, len(taints))
	for _, t := range taints {
		ours = append(ours, taintKey(t))
	}
	slices.Sort(ours)
	if ours = slices.Compact(ours); !slices.Equal(ours, was.Taints) {
		managed := ownership.ReadManaged(&wanted)
		managed.Taints = ours
		managed.Write(&wanted)
	}
	return &wanted
}

// needsHold says whether the Node is to carry our ScaleDownDisabledAnnotation. Where somebody else
// has set that annotation, the value stays as it is.
func (d nodeMetadata) needsHold(node *corev1.Node, was ownership.Managed) bool {
	_, there := node.Annotations[clusterv1alpha1.ScaleDownDisabledAnnotation]
	_, templated := d.annotations[clusterv1alpha1.ScaleDownDisabledAnnotation]
	ours := slices.Contains(was.Annotations, clusterv1alpha1.ScaleDownDisabledAnnotation)
	if !d.rollout.holdScaleDown || templated || there && !ours {
		return false
	}
	return ours || d.rollout.pending.IsZero()
}

// mergeTaints merges three-way: wanted taints are there, those that are only ours are not, others
// stay, in their order.
func mergeTaints(have, wanted []corev1.Taint, ours []string) []corev1.Taint {
	var merged []corev1.Taint
	for _, t := range have {
		key := taintKey(t)
		at := slices.IndexFunc(wanted, func(w corev1.Taint) bool { return taintKey(w) == key })
		switch {
		case at >= 0 && wanted[at].Value != t.Value:
			merged = append(merged, wanted[at])
		case at >= 0 || !slices.Contains(ours, key):
			merged = append(merged, t)
		}
	}
	for _, w := range wanted {
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
	wanted := d.on(node).DeepCopy()
	patch := client.MergeFrom(node)
	if !sameTaints(node.Spec.Taints, wanted.Spec.Taints) {
		// A merge patch replaces the whole list; others change it, too.
		patch = client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})
	}
	if err := r.nodes.Patch(ctx, wanted, patch); err != nil {
		return nil, fmt.Errorf("claim node %s: %w", node.Name, err)
	}
	return wanted, nil
}

// observeRollout returns what a rollout wants of the Machine's Node, as its set says. Of a Machine
// that is being deleted the Node stays as it is.
func (r *reconciler) observeRollout(ctx context.Context, s *machineScope) (nodeRollout, error) {
	m, mem := s.machine, s.memory
	owner := ownership.ControllerOf(m, clusterv1alpha1.MachineSetKind)
	if owner == nil || !m.DeletionTimestamp.IsZero() {
		return nodeRollout{}, nil
	}
	set := &clusterv1alpha1.MachineSet{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: owner.Name}, set, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && set.UID != owner.UID {
		return nodeRollout{}, nil
	}
	if err != nil {
		return nodeRollout{}, fmt.Errorf("read the Machine's set: %w", err)
	}
	rollout := nodeRollout{
		outdated:      set.Annotations[clusterv1alpha1.RolloutAnnotation] == clusterv1alpha1.RolloutOutdated,
		holdScaleDown: annotations.IsOn(set, clusterv1alpha1.HoldScaleDownAnnotation),
	}
	switch {
	case !rollout.outdated:
		mem.outdatedSince = time.Time{}
	case mem.outdatedSince.IsZero():
		mem.outdatedSince = s.state.Now
	}
	if due := mem.outdatedSince.Add(r.outdatedDelay); rollout.outdated && s.state.Now.Before(due) {
		rollout.pending = due
	}
	return rollout, nil
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
