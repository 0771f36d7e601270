package arena

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// foreignNode is the Node that is nobody's Machine's, and the pod that runs there.
const foreignNode = "foreign"

// makeForeign makes VMs and a Node with a pod that are none of Millwright's business, and returns
// the VMs.
func (a *arena) makeForeign(ctx context.Context) ([]*backendv1alpha1.VM, error) {
	var vms []*backendv1alpha1.VM
	for _, vm := range []*backendv1alpha1.VM{
		{Name: "somebody-else"},
		{Name: "another-cluster", ClusterUid: "another-cluster"},
		{Name: "another-clusters-machine", ClusterUid: "another-cluster", MachineUid: "another-machine"},
	} {
		made, err := a.stack.Backend().CreateForeignVM(ctx, &backendv1alpha1.CreateForeignVMRequest{Vm: vm})
		if err != nil {
			return nil, fmt.Errorf("make a foreign VM: %w", err)
		}
		vms = append(vms, made.GetVm())
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: foreignNode}, Spec: corev1.NodeSpec{ProviderID: vms[0].GetProviderId()}}
	if err := a.client.Create(ctx, node); err != nil {
		return nil, fmt.Errorf("make a foreign Node: %w", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: foreignNode}, Spec: corev1.PodSpec{
		NodeName: foreignNode, Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
		// Kubernetes itself would have it end, since no kubelet reports for the Node.
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}}
	if err := a.insist(ctx, func(ctx context.Context) error { return a.client.Create(ctx, pod.DeepCopy()) }); err != nil {
		return nil, fmt.Errorf("make a pod on the foreign Node: %w", err)
	}
	return vms, nil
}

// claimed are the providerIDs that a Machine made by hand may name: those of foreign VMs, then
// those of other Machines, by name.
func (a *arena) claimed() []string {
	ids := slices.Clone(a.foreignIDs)
	a.view.mu.Lock()
	defer a.view.mu.Unlock()
	var machines []*clusterv1alpha1.Machine
	for _, m := range a.view.machines {
		if m.Spec.ProviderID != nil && metav1.GetControllerOf(m) != nil {
			machines = append(machines, m)
		}
	}
	slices.SortFunc(machines, byName)
	for _, m := range machines {
		ids = append(ids, *m.Spec.ProviderID)
	}
	return ids
}

// claim makes a Machine by hand that names somebody else's VM, and deletes it after a while.
func (a *arena) claim(ctx context.Context, s plan.Step) error {
	ids := a.claimed()
	d := &clusterv1alpha1.MachineDeployment{}
	a.give(d, plan.Deployments()[0], plan.Shape{})
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "claim-" + string(uuid.NewUUID())}}
	m.Spec = d.Spec.Template.Spec
	m.Spec.ProviderID = &ids[s.Number%len(ids)]
	if err := a.ensure(ctx, m); err != nil {
		return err
	}
	return errors.Join(wait(ctx, s.Lasts), a.remove(ctx, m))
}
