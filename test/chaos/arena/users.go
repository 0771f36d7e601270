package arena

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/chaos/judge"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// Users try again while the API server is away.
const (
	requestTimeout = 5 * time.Second
	useLimit       = 2 * time.Minute
	usePause       = 100 * time.Millisecond
)

// insist repeats a request until the API server has answered it.
func (a *arena) insist(ctx context.Context, request func(context.Context) error) error {
	limit := a.options.patiently(useLimit)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := request(ctx)
		if err == nil {
			return nil
		}
		if wait(ctx, usePause) != nil {
			return fmt.Errorf("in vain, for %s: %w", limit, err)
		}
	}
}

// use does what a user does.
func (a *arena) use(ctx context.Context, s plan.Step) error {
	switch s.Do {
	case plan.Apply:
		return a.apply(ctx, s.Target, s.Shape)
	case plan.Scale:
		return a.patchDeployment(ctx, keyOf(s.Target), map[string]any{"spec": map[string]any{"replicas": s.Number}})
	case plan.Delete:
		return a.deleteDeployment(ctx, s.Target)
	case plan.DeleteMachine, plan.Mark, plan.DeleteNode, plan.Replace:
		return a.useMachine(ctx, s)
	case plan.Pause:
		return errors.Join(a.pause(ctx, s.Target, "true"), wait(ctx, s.Lasts), a.pause(ctx, s.Target, nil))
	case plan.Hold:
		return errors.Join(a.hold(ctx, s.Target, true), wait(ctx, s.Lasts), a.hold(ctx, s.Target, false))
	}
	return nil
}

// apply makes the deployment, or changes it.
func (a *arena) apply(ctx context.Context, name string, shape plan.Shape) error {
	return a.insist(ctx, func(ctx context.Context) error {
		d := &clusterv1alpha1.MachineDeployment{}
		err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		a.give(d, name, shape)
		if apierrors.IsNotFound(err) {
			return a.client.Create(ctx, d)
		}
		return a.client.Update(ctx, d)
	})
}

// give puts a shape on a deployment.
func (a *arena) give(d *clusterv1alpha1.MachineDeployment, name string, shape plan.Shape) {
	labels := map[string]string{"pool": name}
	cloud := a.options.Cloud
	template := cloud.Templates[shape.Template%len(cloud.Templates)]
	d.Namespace, d.Name = namespace, name
	d.Spec.Replicas = new(int32(shape.Replicas))
	d.Spec.Selector.MatchLabels = labels
	d.Spec.MinReadySeconds = int32(shape.MinReady)
	d.Spec.Strategy.Type = clusterv1alpha1.RollingUpdateStrategy
	d.Spec.Strategy.RollingUpdate = &clusterv1alpha1.MachineRollingUpdate{
		MaxSurge: new(intstr.FromInt32(int32(shape.Surge))), MaxUnavailable: new(intstr.FromInt32(int32(shape.Unavailable))),
	}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Versions.Kubelet = template.Kubelet
	d.Spec.Template.Spec.ProviderSpec.Value = clusterv1alpha1.ProviderSpecValue{
		CloudProvider:     cloud.Name(),
		CloudProviderSpec: runtime.RawExtension{Raw: []byte(template.Spec)},
		OperatingSystem:   clusterv1alpha1.OperatingSystemUbuntu,
		SSHPublicKeys:     []clusterv1alpha1.SSHPublicKey{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKr3 " + canary},
	}
}

// keyOf is the key of a deployment that the plan names.
func keyOf(deployment string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: deployment}
}

func (a *arena) patchDeployment(ctx context.Context, key client.ObjectKey, patch map[string]any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return a.insist(ctx, func(ctx context.Context) error {
		d := &clusterv1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		return client.IgnoreNotFound(a.client.Patch(ctx, d, client.RawPatch(types.MergePatchType, data)))
	})
}

// pause sets the annotation that pauses a deployment, or takes it away with nil.
func (a *arena) pause(ctx context.Context, name string, value any) error {
	return a.patchDeployment(ctx, keyOf(name), map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{clusterv1alpha1.PausedAnnotation: value},
	}})
}

// hold pauses a deployment's rollout, or lets it go on.
func (a *arena) hold(ctx context.Context, name string, held bool) error {
	return a.patchDeployment(ctx, keyOf(name), map[string]any{"spec": map[string]any{"paused": held}})
}

func (a *arena) deleteDeployment(ctx context.Context, name string) error {
	return a.insist(ctx, func(ctx context.Context) error {
		d := &clusterv1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		return client.IgnoreNotFound(a.client.Delete(ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	})
}

// useMachine does something to one of a deployment's Machines.
func (a *arena) useMachine(ctx context.Context, s plan.Step) error {
	machines := a.view.machinesOf(s.Target)
	if len(machines) == 0 {
		return nil
	}
	slices.SortFunc(machines, byName)
	chosen := machines[s.Number%len(machines)]
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: chosen.Name}}
	switch s.Do {
	case plan.DeleteMachine:
		now := time.Now()
		a.note(judge.Act{At: now, Until: now, Do: judge.DeletedByHand, Target: m.Namespace + "/" + m.Name})
		return a.remove(ctx, m)
	case plan.DeleteNode:
		if chosen.Status.NodeRef == nil {
			return nil
		}
		return a.remove(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: chosen.Status.NodeRef.Name}})
	case plan.Replace:
		return a.annotate(ctx, m, clusterv1alpha1.DeleteNowAnnotation)
	}
	return a.annotate(ctx, m, clusterv1alpha1.DeleteMachineAnnotation)
}

func byName(a, b *clusterv1alpha1.Machine) int { return cmp.Compare(a.Name, b.Name) }

func (a *arena) remove(ctx context.Context, o client.Object) error {
	return a.insist(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(a.client.Delete(ctx, o)) })
}

func (a *arena) annotate(ctx context.Context, m *clusterv1alpha1.Machine, key string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, key)
	return a.insist(ctx, func(ctx context.Context) error {
		return client.IgnoreNotFound(a.client.Patch(ctx, m, client.RawPatch(types.MergePatchType, patch)))
	})
}

// strayPrefix begins the machineUID of each stray.
const strayPrefix = "stray-"

// stray makes a VM of this cluster that is no Machine's.
func (a *arena) stray(ctx context.Context) error {
	name := strayPrefix + string(uuid.NewUUID())
	made, err := a.stack.Backend().CreateForeignVM(ctx, &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{
		Name: name, ClusterUid: a.view.clusterUID, MachineUid: name,
	}})
	if err != nil {
		return err
	}
	now := time.Now()
	a.note(judge.Act{At: now, Until: now, Do: judge.Planted, Target: made.GetVm().GetId()})
	return nil
}

// ignoreNoVM passes over a VM that is gone, or in the middle of something.
func ignoreNoVM(err error) error {
	switch status.Code(err) {
	case codes.NotFound, codes.FailedPrecondition:
		return nil
	}
	return err
}
