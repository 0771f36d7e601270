package simkubelet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// kubelet is the kubelet of a VM that has registered a Node.
type kubelet struct {
	node nodeRef
	// running says what was last written to the Node.
	running bool
	// renewing says whether a renewal of the Lease is under way. The wheel's lock guards it.
	renewing bool
	// lease is what was last written of it; nil before that. Only its renewal uses it.
	lease *coordinationv1.Lease
	// renewed is when the Lease was last written, or before that the Node. Only its renewal
	// uses it.
	renewed time.Time
	// looked is when it was looked last whether the Node has become Unknown. Only its renewal uses
	// it.
	looked time.Time
}

// boot starts a VM's kubelet, and with it the Node.
func (f *Fleet) boot(ctx context.Context, m *machine, vm *backendv1alpha1.VM) error {
	if !f.needsStart(m) {
		return nil
	}
	s, err := f.newStart(m, vm)
	if errors.Is(err, errNoKubelet) {
		return nil
	}
	if err != nil {
		f.options.Log.Error("Kubelet refuses to start", "vm", vm.GetId(), "name", vm.GetName(), "error", err)
		return nil // Trying again would not help: user data never changes.
	}
	node, err := s.enrol(ctx)
	if err != nil || node == nil {
		return err
	}
	f.options.Log.Info("Kubelet runs", "vm", vm.GetId(), "node", node.Name)
	f.started(m, &kubelet{node: nodeRef{name: node.Name, uid: node.UID}, running: true, renewed: heardOf(node)})
	return nil
}

// needsStart says whether the VM has started since its kubelet did: it may have stopped only for a
// moment.
func (f *Fleet) needsStart(m *machine) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return m.kubelet == nil || !m.kubelet.running || m.interrupted
}

// started has the kubelet's Lease renewed, unless the VM has stopped meanwhile.
func (f *Fleet) started(m *machine, k *kubelet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.kubelet = k
	if m.vm.GetState() == backendv1alpha1.VMState_VM_STATE_RUNNING {
		m.interrupted = false
		f.leases.add(k)
	}
}

// claim returns the Node that an earlier process registered for a provider id, once.
func (f *Fleet) claim(providerID string) *corev1.Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	node := f.registered[providerID]
	delete(f.registered, providerID)
	return node
}

// shutDown ends a VM's kubelet. Conditions are its last words; without any it never got to say
// them, and the Node only tells kwok.
func (f *Fleet) shutDown(ctx context.Context, m *machine, vm *backendv1alpha1.VM, conditions []corev1.NodeCondition) error {
	k := m.kubelet
	if k == nil {
		node := f.claim(vm.GetProviderId())
		if node == nil {
			return nil
		}
		k = &kubelet{node: nodeRef{name: node.Name, uid: node.UID}, running: kubeletRuns(node)}
		f.mu.Lock()
		m.kubelet = k
		f.mu.Unlock()
		m.claimed = true
	}
	if !k.running {
		return nil
	}
	_, err := f.patch(ctx, k.node, false, conditions)
	if err != nil && !isGone(err) {
		return err
	}
	if len(conditions) > 0 {
		if err := f.stopPods(ctx, k.node.name); err != nil {
			return err
		}
	}
	k.running = false
	f.options.Log.Info("Kubelet stopped", "vm", vm.GetId(), "node", k.node.name)
	return nil
}

// stopPods declares the pods of a Node not Ready. For a Node that went silent, node-lifecycle does
// so; for one that said goodbye, it is up to the kubelet.
func (f *Fleet) stopPods(ctx context.Context, node string) error {
	pods, err := f.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return fmt.Errorf("list pods of Node: %w", err)
	}
	const notReady = `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"NodeShutdown"},{"type":"ContainersReady","status":"False","reason":"NodeShutdown"}]}}`
	for i := range pods.Items {
		pod := &pods.Items[i]
		_, err := f.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(notReady), metav1.PatchOptions{}, "status")
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("patch status of pod: %w", err)
		}
	}
	return nil
}

func (f *Fleet) patch(ctx context.Context, ref nodeRef, running bool, conditions []corev1.NodeCondition) (*corev1.Node, error) {
	data, err := kubeletPatch(ref, running, conditions)
	if err != nil {
		return nil, err
	}
	node, err := f.client.CoreV1().Nodes().Patch(ctx, ref.name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	if err != nil {
		return nil, fmt.Errorf("patch status of Node: %w", err)
	}
	return node, nil
}

// isGone says whether a write failed because the very Node it was for is gone, even where there is
// another of its name now.
func isGone(err error) bool {
	if apierrors.IsNotFound(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}
