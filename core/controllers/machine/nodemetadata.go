package machine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/core/lifecycle"
	"github.com/millwright-dev/millwright/core/ownership"
)

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

// joining is what becomes of a Node that joins.
type joining struct {
	// startup are taints that core takes away, and never puts there.
	startup []corev1.Taint
	// admit: the Node can take pods, so that they go.
	admit bool
	// noCloudController: nobody but core initialises the Node.
	noCloudController bool
}

// outdatedTaint is on Nodes of Machines that are being replaced.
var outdatedTaint = corev1.Taint{Key: clusterv1alpha1.OutdatedTaint, Effect: corev1.TaintEffectPreferNoSchedule}

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

// wantedNode is the Node of the scope as it should be.
func (s *machineScope) wantedNode() *corev1.Node {
	return wantedNode(s.node, s.machine, s.rollout, s.joining)
}

// isSynced says whether the Node has everything that is wanted, and nothing that was ours and is
// wanted no more.
func isSynced(node, wanted *corev1.Node) bool {
	return node.Spec.ProviderID == wanted.Spec.ProviderID && sameTaints(node.Spec.Taints, wanted.Spec.Taints) &&
		maps.Equal(node.Labels, wanted.Labels) && maps.Equal(node.Annotations, wanted.Annotations)
}

// wantedNode returns the Node as its Machine wants it. It shares with node what does not differ. A
// Node that a cloud controller has yet to initialise gets its providerID from that.
func wantedNode(node *corev1.Node, m *clusterv1alpha1.Machine, rollout nodeRollout, j joining) *corev1.Node {
	wanted := *node
	if !isUninitialized(node) || j.noCloudController {
		wanted.Spec.ProviderID = ptr.Deref(m.Spec.ProviderID, "")
	}
	annotations, was := nodeAnnotations(m), ownership.ReadManaged(node)
	var taints []corev1.Taint
	for _, t := range m.Spec.Taints {
		taints = append(taints, t.NodeTaint())
	}
	taints = withoutTaints(taints, j.startup)
	if rollout.outdated && (rollout.pending.IsZero() || slices.Contains(was.Taints, taintKey(outdatedTaint))) {
		taints = append(taints, outdatedTaint)
	}
	if rollout.needsHold(node, annotations, was) {
		annotations[clusterv1alpha1.ScaleDownDisabledAnnotation] = "true"
	}
	ownership.SyncMetadata(&wanted, bootstrap.NodeLabels(m), annotations)
	wanted.Spec.Taints = j.settle(mergeTaints(node.Spec.Taints, taints, was.Taints))
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

// settle returns taints without those whose time is over.
func (j joining) settle(taints []corev1.Taint) []corev1.Taint {
	if j.admit {
		taints = withoutTaints(taints, j.startup)
	}
	if j.noCloudController {
		taints = slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == lifecycle.UninitializedTaint })
	}
	return taints
}

// needsHold says whether the Node is to carry our ScaleDownDisabledAnnotation. Where somebody else,
// or the Machine's template, has set that annotation, the value stays as it is.
func (r nodeRollout) needsHold(node *corev1.Node, templated map[string]string, was ownership.Managed) bool {
	_, there := node.Annotations[clusterv1alpha1.ScaleDownDisabledAnnotation]
	_, isTemplated := templated[clusterv1alpha1.ScaleDownDisabledAnnotation]
	ours := slices.Contains(was.Annotations, clusterv1alpha1.ScaleDownDisabledAnnotation)
	if !r.holdScaleDown || isTemplated || there && !ours {
		return false
	}
	return ours || r.pending.IsZero()
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

// sync brings the Node, in one write, up to what is wanted, and returns it as written.
func (c nodeClient) sync(ctx context.Context, node, wanted *corev1.Node) (*corev1.Node, error) {
	wanted = wanted.DeepCopy()
	patch := client.MergeFrom(node)
	if !sameTaints(node.Spec.Taints, wanted.Spec.Taints) {
		// A merge patch replaces the whole list; others change it, too.
		patch = client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})
	}
	if err := c.Patch(ctx, wanted, patch); err != nil {
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
	if due := mem.outdatedSince.Add(r.OutdatedNodeDelay); rollout.outdated && s.state.Now.Before(due) {
		rollout.pending = due
	}
	return rollout, nil
}
