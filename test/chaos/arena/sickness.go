package arena

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// unhealthyAfter is for how long a Node has to report that it is not Ready to be replaced.
const unhealthyAfter = 6 * time.Second

// checkHealth makes a health check of all machines that deployments have.
func (u *users) checkHealth(ctx context.Context) error {
	check := &clusterv1alpha1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "all"},
		Spec: clusterv1alpha1.MachineHealthCheckSpec{
			Selector: clusterv1alpha1.LabelSelector{MatchExpressions: []clusterv1alpha1.LabelSelectorRequirement{{Key: "pool", Operator: metav1.LabelSelectorOpExists}}},
			UnhealthyNodeConditions: []clusterv1alpha1.UnhealthyCondition{{
				Type: string(corev1.NodeReady), Status: metav1.ConditionFalse, Timeout: metav1.Duration{Duration: unhealthyAfter},
			}},
		},
	}
	if err := u.client.Create(ctx, check); err != nil {
		return fmt.Errorf("make a health check: %w", err)
	}
	return nil
}

// sicken has the Node of a Machine report that it is not Ready, and after a while that it is.
func (u *users) sicken(ctx context.Context, s plan.Step) error {
	m := u.choose(s)
	if m == nil || m.Status.NodeRef == nil {
		return nil
	}
	return errors.Join(u.report(ctx, m.Status.NodeRef.Name, corev1.ConditionFalse), wait(ctx, s.Lasts), u.report(ctx, m.Status.NodeRef.Name, corev1.ConditionTrue))
}

// report writes a Node's condition Ready, as its kubelet does.
func (u *users) report(ctx context.Context, node string, status corev1.ConditionStatus) error {
	return u.insist(ctx, func(ctx context.Context) error {
		now := time.Now().UTC().Format(time.RFC3339)
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []map[string]any{{
			"type": corev1.NodeReady, "status": status, "reason": "Chaos", "lastHeartbeatTime": now, "lastTransitionTime": now,
		}}}})
		if err != nil {
			return err
		}
		o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
		return client.IgnoreNotFound(u.workload.Status().Patch(ctx, o, client.RawPatch(types.StrategicMergePatchType, patch)))
	})
}

// holdDeletion deletes a Machine that an annotation holds for a while.
func (u *users) holdDeletion(ctx context.Context, s plan.Step) error {
	chosen := u.choose(s)
	if chosen == nil {
		return nil
	}
	key := clusterv1alpha1.PreTerminateHookAnnotationPrefix + "/chaos"
	if s.Number%3 == 0 {
		key = clusterv1alpha1.PreDrainHookAnnotationPrefix + "/chaos"
	}
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: chosen.Name}}
	if err := u.annotate(ctx, m, key, "chaos"); err != nil {
		return err
	}
	return errors.Join(u.deleteMachine(ctx, m), wait(ctx, s.Lasts), u.annotate(ctx, m, key, nil))
}
