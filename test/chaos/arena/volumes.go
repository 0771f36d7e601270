package arena

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/attacher"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// detachTimeout is how long machines wait for volumes where their deployment says nothing of that:
// longer than any volume takes here. shortDetachTimeout is shorter than some take.
const (
	detachTimeout      = time.Minute
	shortDetachTimeout = 8 * time.Second
)

// detachTimeoutOf is what a deployment says of that: one has little patience, one waits for ever,
// and others say nothing.
func detachTimeoutOf(deployment string) *metav1.Duration {
	switch deployment {
	case plan.Deployments()[0]:
		return &metav1.Duration{Duration: shortDetachTimeout}
	case plan.Deployments()[1]:
		return &metav1.Duration{}
	}
	return nil
}

// attachVolumes runs pods with volumes on machines, where the round deletes such machines. It waits
// until the volumes have been attached for so long that the manager knows.
func (a *arena) attachVolumes(ctx context.Context, p plan.Round) error {
	machines, wanted := a.view.withNodes(append(plan.Deployments(), plan.Team)...), map[string]bool{}
	for _, s := range p.Steps {
		if s.Do != plan.Detach || len(machines) == 0 {
			continue
		}
		m := machines[s.Number%len(machines)]
		if err := a.attachTo(ctx, m, s.Lasts); err != nil {
			return fmt.Errorf("run pods with volumes: %w", err)
		}
		wanted[m.Status.NodeRef.Name] = true
	}
	if len(wanted) == 0 {
		return nil
	}
	err := a.await(ctx, func() bool {
		for node := range wanted {
			if a.view.countAttachments(node) < volumesPerMachine {
				return false
			}
		}
		return true
	})
	return errors.Join(err, wait(ctx, a.options.patiently(patience)+tickInterval))
}

// volumesPerMachine is how many volumes a machine has that has any.
const volumesPerMachine = 2

// attachTo runs pods on a machine, one of which a drain leaves alone. Their volumes take so long to
// be detached.
func (a *arena) attachTo(ctx context.Context, m *clusterv1alpha1.Machine, takes time.Duration) error {
	for _, drain := range []string{"", clusterv1alpha1.DrainSkip} {
		pod := podWithVolume(m, drain)
		claim := claimOf(pod)
		a.volumes.Slow(claim.Spec.VolumeName, takes)
		for _, o := range []client.Object{claim, pod} {
			if err := a.users.ensure(ctx, o); err != nil && !errors.Is(err, errLeaving) {
				return err
			}
		}
	}
	return nil
}

// deleteWithVolumes deletes a machine to which volumes are attached, if there is one.
func (a *arena) deleteWithVolumes(ctx context.Context, s plan.Step) error {
	machines := slices.DeleteFunc(a.view.withNodes(append(plan.Deployments(), plan.Team)...), func(m *clusterv1alpha1.Machine) bool {
		return a.view.countAttachments(m.Status.NodeRef.Name) == 0
	})
	if len(machines) == 0 {
		return nil
	}
	m := machines[s.Number%len(machines)]
	return a.users.deleteMachine(ctx, &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}})
}

// endVolumeWaits ends waits that have no end: a machine that waits for volumes for ever, and whose
// drain has timed out, may have a kubelet that is gone. Nobody unmounts its pods' volumes then.
func (a *arena) endVolumeWaits(ctx context.Context) error {
	for _, m := range a.view.machinesOf(plan.Deployments()[1]) {
		drained := meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionDrained)
		detached := meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionVolumesDetached)
		isEndless := drained != nil && drained.Reason == clusterv1alpha1.ReasonDrainTimedOut &&
			detached != nil && detached.Reason == clusterv1alpha1.ReasonWaitingForVolumes
		if !isEndless {
			continue
		}
		err := a.users.insist(ctx, func(ctx context.Context) error {
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:""}}}`,
				clusterv1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation))
			return client.IgnoreNotFound(a.users.client.Patch(ctx, m.DeepCopy(), patch))
		})
		if err != nil {
			return fmt.Errorf("let machine %s go with its volumes: %w", m.Name, err)
		}
	}
	return nil
}

// podWithVolume is a pod on the Node of a Machine. Its label says what a drain does with it.
func podWithVolume(m *clusterv1alpha1.Machine, drain string) *corev1.Pod {
	name := m.Namespace + "-" + m.Name
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: applications, Name: name}}
	if drain != "" {
		name += "-" + drain
		pod.Name, pod.Labels = name, map[string]string{clusterv1alpha1.DrainLabel: drain}
	}
	pod.Spec = corev1.PodSpec{
		NodeName: m.Status.NodeRef.Name, Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}}},
	}
	return pod
}

// claimOf is the claim of a pod with a volume, bound to it. Nobody but core reads it.
func claimOf(pod *corev1.Pod) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: attacher.VolumeOf(pod.Namespace, pod.Name),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}
