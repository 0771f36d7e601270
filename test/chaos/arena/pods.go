package arena

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/localcluster"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// applications is the namespace of what runs on the machines.
const applications = "applications"

// pods run applications on the machines' Nodes.
type pods struct {
	users *users
}

// run runs an application on the Nodes of a deployment, which bears the deployment's name.
func (p *pods) run(ctx context.Context, deployment string, replicas int) error {
	for _, o := range p.application(deployment, int32(replicas)) {
		if err := p.users.ensure(ctx, o); err != nil && !errors.Is(err, errLeaving) {
			return fmt.Errorf("run pods: %w", err)
		}
	}
	return nil
}

// application is a Deployment and its PodDisruptionBudget.
func (p *pods) application(deployment string, replicas int32) []client.Object {
	labels := map[string]string{"app": deployment}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	object := metav1.ObjectMeta{Namespace: applications, Name: deployment}
	pods := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{localcluster.UsesGraceAnnotation: "true"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"pool": deployment}, Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
			TerminationGracePeriodSeconds: new(int64(p.users.options.patiently(podGrace) / time.Second)),
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

// stop ends all applications; nothing keeps a drain up but the time that their pods take.
func (p *pods) stop(ctx context.Context) error {
	for _, deployment := range plan.Deployments() {
		for _, o := range p.application(deployment, 0) {
			if err := p.users.remove(ctx, o); err != nil {
				return fmt.Errorf("stop pods: %w", err)
			}
		}
	}
	return nil
}

func isRunning(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp.IsZero()
}

func isEnding(p *corev1.Pod) bool { return !p.DeletionTimestamp.IsZero() }
