package arena

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/chaos/clouds"
	"github.com/millwright-dev/millwright/test/chaos/judge"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// Users try again while the API server is away.
const (
	requestTimeout = 5 * time.Second
	useLimit       = 2 * time.Minute
	usePause       = 100 * time.Millisecond
)

// users work with the API server as people do: they try again while it is away.
type users struct {
	options Options
	// client is for the cluster of the Machines, workload for that of the Nodes.
	client, workload client.Client
	view             *view
	record           *record
	// foreignIDs are the providerIDs of VMs that are none of Millwright's business.
	foreignIDs []string
}

// clientOf returns the client of the cluster that an object is in.
func (u *users) clientOf(o client.Object) client.Client {
	switch o.(type) {
	case *corev1.Node, *corev1.Pod, *corev1.PersistentVolumeClaim, *appsv1.Deployment, *policyv1.PodDisruptionBudget:
		return u.workload
	}
	return u.client
}

// insist repeats a request until the API server has answered it.
func (u *users) insist(ctx context.Context, request func(context.Context) error) error {
	limit := u.options.patiently(useLimit)
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

// act does what a step says.
func (u *users) act(ctx context.Context, s plan.Step) error {
	switch s.Do {
	case plan.Apply:
		return u.apply(ctx, s.Target, s.Shape)
	case plan.Scale:
		return u.patchDeployment(ctx, keyOf(s.Target), map[string]any{"spec": map[string]any{"replicas": s.Number}})
	case plan.Delete:
		return u.deleteDeployment(ctx, s.Target)
	case plan.DeleteMachine, plan.Mark, plan.DeleteNode, plan.Replace:
		return u.actOnMachine(ctx, s)
	case plan.Pause:
		return errors.Join(u.pause(ctx, s.Target, "true"), wait(ctx, s.Lasts), u.pause(ctx, s.Target, nil))
	case plan.Hold:
		return errors.Join(u.holdRollout(ctx, s.Target, true), wait(ctx, s.Lasts), u.holdRollout(ctx, s.Target, false))
	}
	return nil
}

// apply makes the deployment, or changes it.
func (u *users) apply(ctx context.Context, name string, shape plan.Shape) error {
	return u.insist(ctx, func(ctx context.Context) error {
		d := &clusterv1alpha1.MachineDeployment{}
		err := u.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		giveShape(d, u.options.Cloud, name, shape)
		if apierrors.IsNotFound(err) {
			return u.client.Create(ctx, d)
		}
		return u.client.Update(ctx, d)
	})
}

// giveShape makes d the deployment of that name and shape in a cloud.
func giveShape(d *clusterv1alpha1.MachineDeployment, cloud clouds.Cloud, name string, shape plan.Shape) {
	labels := map[string]string{"pool": name}
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
	d.Spec.Template.Spec.NodeVolumeDetachTimeout = detachTimeoutOf(name)
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

// patchDeployment merges a patch into a deployment, if it is there.
func (u *users) patchDeployment(ctx context.Context, key client.ObjectKey, patch map[string]any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return u.insist(ctx, func(ctx context.Context) error {
		d := &clusterv1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		return client.IgnoreNotFound(u.client.Patch(ctx, d, client.RawPatch(types.MergePatchType, data)))
	})
}

// pause sets the annotation that pauses a deployment, or takes it away with nil.
func (u *users) pause(ctx context.Context, name string, value any) error {
	return u.patchDeployment(ctx, keyOf(name), map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{clusterv1alpha1.PausedAnnotation: value},
	}})
}

// holdRollout pauses a deployment's rollout, or lets it go on.
func (u *users) holdRollout(ctx context.Context, name string, held bool) error {
	return u.patchDeployment(ctx, keyOf(name), map[string]any{"spec": map[string]any{"paused": held}})
}

// deleteDeployment deletes a deployment and, after it, what it owns.
func (u *users) deleteDeployment(ctx context.Context, name string) error {
	return u.insist(ctx, func(ctx context.Context) error {
		d := &clusterv1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		return client.IgnoreNotFound(u.client.Delete(ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	})
}

// actOnMachine does something to one of a deployment's Machines.
func (u *users) actOnMachine(ctx context.Context, s plan.Step) error {
	chosen := u.choose(s)
	if chosen == nil {
		return nil
	}
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: chosen.Name}}
	switch s.Do {
	case plan.DeleteMachine:
		return u.deleteMachine(ctx, m)
	case plan.DeleteNode:
		if chosen.Status.NodeRef == nil {
			return nil
		}
		return u.remove(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: chosen.Status.NodeRef.Name}})
	case plan.Replace:
		return u.annotate(ctx, m, clusterv1alpha1.DeleteNowAnnotation, "true")
	}
	return u.annotate(ctx, m, clusterv1alpha1.DeleteMachineAnnotation, "true")
}

// choose returns the Machine that a step is about; nil where its deployment has none.
func (u *users) choose(s plan.Step) *clusterv1alpha1.Machine {
	machines := u.view.machinesOf(s.Target)
	if len(machines) == 0 {
		return nil
	}
	slices.SortFunc(machines, byName)
	return machines[s.Number%len(machines)]
}

// deleteMachine deletes a Machine, and takes down that a user did.
func (u *users) deleteMachine(ctx context.Context, m *clusterv1alpha1.Machine) error {
	u.record.noteNow(judge.DeletedByHand, m.Namespace+"/"+m.Name)
	return u.remove(ctx, m)
}

func byName(a, b *clusterv1alpha1.Machine) int { return cmp.Compare(a.Name, b.Name) }

// remove deletes an object, if it is there.
func (u *users) remove(ctx context.Context, o client.Object) error {
	return u.insist(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(u.clientOf(o).Delete(ctx, o)) })
}

// annotate sets an annotation, or takes it away with nil.
func (u *users) annotate(ctx context.Context, m *clusterv1alpha1.Machine, key string, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	if err != nil {
		return err
	}
	return u.insist(ctx, func(ctx context.Context) error {
		return client.IgnoreNotFound(u.client.Patch(ctx, m, client.RawPatch(types.MergePatchType, patch)))
	})
}

// errLeaving says that an object is being deleted: nobody can have it back before it is gone.
var errLeaving = errors.New("it is being deleted")

// ensure makes an object that is not there. The error is errLeaving when it is being deleted, or
// its namespace is.
func (u *users) ensure(ctx context.Context, wanted client.Object) error {
	leaving := false
	err := u.insist(ctx, func(ctx context.Context) error {
		there, _ := wanted.DeepCopyObject().(client.Object)
		err := u.clientOf(wanted).Get(ctx, client.ObjectKeyFromObject(wanted), there)
		if err == nil {
			leaving = !there.GetDeletionTimestamp().IsZero()
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		made, _ := wanted.DeepCopyObject().(client.Object)
		err = u.clientOf(wanted).Create(ctx, made)
		if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			leaving = true
			return nil
		}
		return err
	})
	if err == nil && leaving {
		return errLeaving
	}
	return err
}
