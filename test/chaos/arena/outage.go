package arena

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

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

// drainInOutage takes the API server of the Nodes away while machines of a deployment are drained.
func (a *arena) drainInOutage(ctx context.Context, s plan.Step) error {
	machines := a.view.withNodes(s.Target)
	if len(machines) == 0 {
		return nil
	}
	if err := a.pods.run(ctx, s.Target, podsPerNode*len(machines)); err != nil {
		return err
	}
	if err := a.await(ctx, func() bool { return a.view.countPods(s.Target, isRunning) >= podsPerNode*len(machines) }); err != nil {
		return err
	}
	for _, m := range machines[:(len(machines)+1)/2] {
		if err := a.users.deleteMachine(ctx, &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}); err != nil {
			return err
		}
	}
	if err := a.await(ctx, func() bool { return a.view.countPods(s.Target, isEnding) > 0 }); err != nil {
		return err
	}
	target := plan.APIServer
	if a.options.Plan.Workload {
		target = plan.WorkloadAPIServer
	}
	return a.processes.disturb(ctx, plan.Step{Do: plan.Kill, Target: target, Lasts: a.options.patiently(s.Lasts)})
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
