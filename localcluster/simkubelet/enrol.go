package simkubelet

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// start is one start of a VM's kubelet.
type start struct {
	fleet   *Fleet
	machine *machine
	vm      *backendv1alpha1.VM
	config  kubeletConfig
	// bootstrap is nil in the fast mode.
	bootstrap *rest.Config
	// node is what the kubelet would register.
	node *corev1.Node
}

// newStart reads a VM's user data. The errors are parseUserData's, or say what a kubelet lacks that
// is to get a certificate.
func (f *Fleet) newStart(m *machine, vm *backendv1alpha1.VM) (*start, error) {
	config, root, err := parseUserData(vm.GetUserData())
	if err != nil {
		return nil, err
	}
	s := &start{fleet: f, machine: m, vm: vm, config: config, node: f.newNode(vm, config, time.Now())}
	if f.options.Fast {
		return s, nil
	}
	s.bootstrap, err = bootstrapConfig(root)
	return s, err
}

// providerID is by what a Node is told from another VM's.
func (s *start) providerID() string { return cmp.Or(s.config.providerID, s.vm.GetProviderId()) }

// owns says whether a Node that is there is this VM's. A cloud controller manager may not have
// written its provider id yet.
func (s *start) owns(node *corev1.Node) bool {
	if node.Spec.ProviderID == "" {
		return node.Status.NodeInfo.MachineID == s.vm.GetId()
	}
	return node.Spec.ProviderID == s.providerID()
}

// enrol makes sure that the Node is there and shows a kubelet that runs, and returns it as it is
// then; nil while the kubelet waits for its certificate.
func (s *start) enrol(ctx context.Context) (*corev1.Node, error) {
	if found := s.claim(); found != nil {
		return found, nil
	}
	if s.fleet.options.Fast {
		return s.register(ctx, s.fleet.client)
	}
	if id := s.machine.credentials.identity(); len(id.certificate) > 0 {
		return s.registerItself(ctx, id)
	}
	if s.machine.claimed {
		node, err := s.adopt(ctx)
		if !apierrors.IsNotFound(err) {
			return node, err
		}
	}
	s.startJoin(ctx)
	return nil, nil
}

// claim returns the Node that an earlier process registered for the VM, if its kubelet still runs.
func (s *start) claim() *corev1.Node {
	found := s.fleet.claim(s.providerID())
	if found == nil || s.machine.kubelet != nil || found.Name != s.node.Name {
		return nil
	}
	s.machine.claimed = true
	if !kubeletRuns(found) {
		return nil
	}
	return found
}

// registerItself registers the Node as the Node's own user, and has the kubelet request what
// certificate it lacks.
func (s *start) registerItself(ctx context.Context, id identity) (*corev1.Node, error) {
	client, err := newNodeClient(s.bootstrap, id)
	if err != nil {
		return nil, err
	}
	node, err := s.register(ctx, client)
	if err != nil || id.serving || !s.needsServing(node) {
		client.close()
		return node, err
	}
	s.startServing(ctx, node, client)
	return node, nil
}

// needsServing says whether the kubelet requests a certificate for its own API: a Node without an
// address has nobody to ask it.
func (s *start) needsServing(node *corev1.Node) bool {
	_, addresses := servingNames(node.Status.Addresses)
	return s.config.requestsServing && len(addresses) > 0
}

// register makes the Node through client, which is the kubelet's own or, in the fast mode, the
// fleet's. A Node that is there already has to be this VM's.
func (s *start) register(ctx context.Context, client kubernetes.Interface) (*corev1.Node, error) {
	created, err := client.CoreV1().Nodes().Create(ctx, s.node, metav1.CreateOptions{})
	if err == nil {
		return created, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create Node: %w", err)
	}
	return s.adopt(ctx)
}

// adopt makes the VM's Node, which is there, show a kubelet that runs.
func (s *start) adopt(ctx context.Context) (*corev1.Node, error) {
	found, err := s.fleet.client.CoreV1().Nodes().Get(ctx, s.node.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("look at the Node that is there: %w", err)
	}
	if !s.owns(found) {
		return nil, fmt.Errorf("the Node %s is another VM's: %s", found.Name, found.Spec.ProviderID)
	}
	if kubeletRuns(found) {
		return found, nil
	}
	return s.fleet.patch(ctx, nodeRef{name: found.Name, uid: found.UID}, true, s.node.Status.Conditions)
}
