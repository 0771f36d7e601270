package arena

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster"
	"github.com/millwright-dev/millwright/test/chaos/judge"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// applications is the namespace of what runs on the machines.
const applications = "applications"

// A Node counts as lost when its Lease is as old as nodeGrace. An outage takes longer, and pods
// take podGrace to end, which is longer still. A drain has drainTimeout: time for pods that end one
// after the other.
const (
	leaseDuration = 4 * time.Second
	nodeGrace     = 8 * time.Second
	podGrace      = 15 * time.Second
	drainTimeout  = 45 * time.Second
)

// crowdTime is how long at most an outage waits for pods to run, and for the drain to begin: it may
// be kept from it.
const crowdTime = 8 * time.Second

// podsPerNode are as many as there are of an application for each Node; half of them may be
// missing.
const podsPerNode = 2

// outage takes the API server away while machines of a deployment are drained.
func (a *arena) outage(ctx context.Context, s plan.Step) error {
	machines := a.withNodes(s.Target)
	if len(machines) == 0 {
		return nil
	}
	if err := a.runPods(ctx, s.Target, podsPerNode*len(machines)); err != nil {
		return err
	}
	if err := a.await(ctx, func() bool { return a.view.podsOf(s.Target, runs) >= podsPerNode*len(machines) }); err != nil {
		return err
	}
	for _, m := range machines[:(len(machines)+1)/2] {
		now := time.Now()
		a.note(judge.Act{At: now, Until: now, Do: judge.DeletedByHand, Target: m.Namespace + "/" + m.Name})
		if err := a.remove(ctx, &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}); err != nil {
			return err
		}
	}
	if err := a.await(ctx, func() bool { return a.view.podsOf(s.Target, ends) > 0 }); err != nil {
		return err
	}
	return a.disturb(ctx, plan.Step{Do: plan.Kill, Target: plan.APIServer, Lasts: a.options.patiently(s.Lasts)})
}

// withNodes are the machines of a deployment that have a Node and are to stay, by name.
func (a *arena) withNodes(deployment string) []*clusterv1alpha1.Machine {
	machines := slices.DeleteFunc(a.view.machinesOf(deployment), func(m *clusterv1alpha1.Machine) bool {
		return m.Status.NodeRef == nil || !m.DeletionTimestamp.IsZero()
	})
	slices.SortFunc(machines, byName)
	return machines
}

// await waits until something is so, or for as long as it may take: then it is as good as it gets.
func (a *arena) await(ctx context.Context, so func() bool) error {
	for end := time.Now().Add(a.options.patiently(crowdTime)); !so() && time.Now().Before(end); {
		if err := wait(ctx, lookInterval); err != nil {
			return err
		}
	}
	return nil
}

// runPods runs an application on the Nodes of a deployment, which bears the deployment's name.
func (a *arena) runPods(ctx context.Context, deployment string, replicas int) error {
	for _, o := range a.application(deployment, int32(replicas)) {
		if err := a.ensure(ctx, o); err != nil && !errors.Is(err, errLeaving) {
			return fmt.Errorf("run pods: %w", err)
		}
	}
	return nil
}

// application is a Deployment and its PodDisruptionBudget.
func (a *arena) application(deployment string, replicas int32) []client.Object {
	labels := map[string]string{"app": deployment}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	object := metav1.ObjectMeta{Namespace: applications, Name: deployment}
	pods := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{localcluster.UsesGraceAnnotation: "true"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"pool": deployment}, Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
			TerminationGracePeriodSeconds: new(int64(a.options.patiently(podGrace) / time.Second)),
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector,
			}},
		},
	}
	return []client.Object{
		&policyv1.PodDisruptionBudget{ObjectMeta: object, Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: selector, MaxUnavailable: new(intstr.FromString("50%")),
		}},
		&appsv1.Deployment{ObjectMeta: object, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: pods}},
	}
}

// stopPods ends all applications; nothing keeps a drain up but the time that their pods take.
func (a *arena) stopPods(ctx context.Context) error {
	for _, deployment := range plan.Deployments() {
		for _, o := range a.application(deployment, 0) {
			if err := a.remove(ctx, o); err != nil {
				return fmt.Errorf("stop pods: %w", err)
			}
		}
	}
	return nil
}

// runs and ends are what a pod does.
func runs(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp.IsZero()
}
func ends(p *corev1.Pod) bool { return !p.DeletionTimestamp.IsZero() }
