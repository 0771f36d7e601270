package rollout

import (
	"context"
	"fmt"
	"io"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Rollout is the rollout of one MachineDeployment.
type Rollout struct {
	// Client talks to the API server as the person.
	Client client.Client
	// Key names the MachineDeployment.
	Key client.ObjectKey
	// Out is where the person reads.
	Out io.Writer
}

// Pause stops the rollout and holds back changes of the template. Scaling goes on.
func (r Rollout) Pause(ctx context.Context) error { return r.pause(ctx, true, "paused") }

// Resume lets the rollout go on.
func (r Rollout) Resume(ctx context.Context) error { return r.pause(ctx, false, "resumed") }

func (r Rollout) pause(ctx context.Context, paused bool, done string) error {
	md, err := r.get(ctx)
	if err != nil {
		return err
	}
	if md.Spec.Paused == paused {
		return fmt.Errorf("machinedeployment %q is already %s", md.Name, map[bool]string{true: "paused", false: "running"}[paused])
	}
	return r.change(ctx, md, done, func(md *clusterv1alpha1.MachineDeployment) { md.Spec.Paused = paused })
}

// Restart replaces all machines by others of the same template.
func (r Rollout) Restart(ctx context.Context) error {
	md, err := r.get(ctx)
	if err != nil {
		return err
	}
	if md.Spec.Paused {
		return fmt.Errorf("machinedeployment %q is paused: resume it first", md.Name)
	}
	sets, err := r.sets(ctx, md)
	if err != nil {
		return err
	}
	// The clock here may be behind that of the API server, and a time before the sets were made
	// would replace nothing.
	after := metav1.Now()
	if last := md.Spec.RolloutAfter; last != nil && !after.After(last.Time) {
		after = metav1.NewTime(last.Add(time.Second))
	}
	for i := range sets {
		if made := sets[i].CreationTimestamp; made.After(after.Time) {
			after = made
		}
	}
	return r.change(ctx, md, "restarted", func(md *clusterv1alpha1.MachineDeployment) { md.Spec.RolloutAfter = &after })
}

// Scale gives the deployment that many replicas. It asks the subresource scale: who may scale need
// not be allowed to change the deployment.
func (r Rollout) Scale(ctx context.Context, replicas int32) error {
	md := &clusterv1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.Key.Namespace, Name: r.Key.Name}}
	scale := &autoscalingv1.Scale{}
	if err := r.Client.SubResource("scale").Get(ctx, md, scale); err != nil {
		return err
	}
	scale.Spec.Replicas = replicas
	if err := r.Client.SubResource("scale").Update(ctx, md, client.WithSubResourceBody(scale)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(r.Out, "machinedeployment %q scaled\n", md.Name)
	return err
}

func (r Rollout) get(ctx context.Context) (*clusterv1alpha1.MachineDeployment, error) {
	md := &clusterv1alpha1.MachineDeployment{}
	return md, r.Client.Get(ctx, r.Key, md)
}

// change writes one change, unless somebody else has changed the deployment since it was read.
func (r Rollout) change(ctx context.Context, md *clusterv1alpha1.MachineDeployment, done string, change func(*clusterv1alpha1.MachineDeployment)) error {
	changed := md.DeepCopy()
	change(changed)
	patch := client.MergeFromWithOptions(md, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, changed, patch); err != nil {
		return err
	}
	_, err := fmt.Fprintf(r.Out, "machinedeployment %q %s\n", md.Name, done)
	return err
}
