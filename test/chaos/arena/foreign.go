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

// makeForeign makes VMs that are none of Millwright's business, and returns them.
func (c *cloud) makeForeign(ctx context.Context) ([]*backendv1alpha1.VM, error) {
	var vms []*backendv1alpha1.VM
	for _, vm := range []*backendv1alpha1.VM{
		{Name: "somebody-else"},
		{Name: "another-cluster", ClusterUid: "another-cluster"},
		{Name: "another-clusters-machine", ClusterUid: "another-cluster", MachineUid: "another-machine"},
	} {
		made, err := c.backend.CreateForeignVM(ctx, &backendv1alpha1.CreateForeignVMRequest{Vm: vm})
		if err != nil {
			return nil, fmt.Errorf("make a foreign VM: %w", err)
		}
		vms = append(vms, made.GetVm())
	}
	return vms, nil
}

// makeForeignNode makes a Node of a foreign VM, with a pod.
func (u *users) makeForeignNode(ctx context.Context, providerID string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: foreignNode}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	if err := u.workload.Create(ctx, node); err != nil {
		return fmt.Errorf("make a foreign Node: %w", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: foreignNode}, Spec: corev1.PodSpec{
		NodeName: foreignNode, Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
		// Kubernetes itself would have it end, since no kubelet reports for the Node.
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}}
	if err := u.insist(ctx, func(ctx context.Context) error { return u.workload.Create(ctx, pod.DeepCopy()) }); err != nil {
		return fmt.Errorf("make a pod on the foreign Node: %w", err)
	}
	return nil
}

// claimable are the providerIDs that a Machine made by hand may name: those of foreign VMs, then
// those of other Machines, by name.
func (u *users) claimable() []string {
	return append(slices.Clone(u.foreignIDs), u.view.providerIDs()...)
}

// claimVM makes a Machine by hand that names somebody else's VM, and deletes it after a while.
func (u *users) claimVM(ctx context.Context, s plan.Step) error {
	ids := u.claimable()
	d := &clusterv1alpha1.MachineDeployment{}
	giveShape(d, u.options.Cloud, plan.Deployments()[0], plan.Shape{})
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "claim-" + string(uuid.NewUUID())}}
	m.Spec = d.Spec.Template.Spec
	m.Spec.ProviderID = &ids[s.Number%len(ids)]
	if err := u.ensure(ctx, m); err != nil {
		return err
	}
	return errors.Join(wait(ctx, s.Lasts), u.remove(ctx, m))
}
