package rollout

import (
	"context"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// look is how often a rollout is looked at.
const look = 500 * time.Millisecond

// Status tells how the rollout gets on until it is complete; once only if watch is false. A rollout
// whose progress deadline is exceeded is an error.
func (r Rollout) Status(ctx context.Context, watch bool) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	told := ""
	for {
		md, err := r.get(ctx)
		if err != nil {
			return err
		}
		text, done, err := Verdict(md)
		if err != nil {
			return err
		}
		if text != told {
			_, _ = fmt.Fprintln(r.Out, text)
			told = text
		}
		if done || !watch {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("interrupted, and the rollout goes on: %w", ctx.Err())
		}
	}
}

// Verdict says in words how the rollout gets on, and whether there is nothing more to wait for.
func Verdict(md *clusterv1alpha1.MachineDeployment) (text string, done bool, err error) {
	s := md.Status
	if p := apimeta.FindStatusCondition(s.Conditions, clusterv1alpha1.ConditionPaused); p != nil {
		return p.Message, false, nil
	}
	if s.ObservedGeneration < md.Generation {
		return "Waiting for the change to be observed", false, nil
	}
	is := apimeta.FindStatusCondition(s.Conditions, clusterv1alpha1.ConditionProgressing)
	replicas := ptr.Deref(md.Spec.Replicas, 0)
	switch {
	case is != nil && is.Reason == clusterv1alpha1.ReasonProgressDeadlineExceeded:
		return "", false, fmt.Errorf("machinedeployment %q has exceeded its progress deadline: %s", md.Name, is.Message)
	case is != nil && is.Reason == clusterv1alpha1.ReasonDeletionAwaited:
		return fmt.Sprintf("%d of %d machines have the template; the others are replaced when somebody deletes them", s.UpdatedReplicas, replicas), true, nil
	case md.Spec.Paused:
		return "The rollout is paused", false, nil
	case s.UpdatedReplicas < replicas:
		return fmt.Sprintf("Waiting: %d of %d machines have the template", s.UpdatedReplicas, replicas), false, nil
	case s.Replicas > s.UpdatedReplicas:
		return fmt.Sprintf("Waiting: %d machines of an old template are still there", s.Replicas-s.UpdatedReplicas), false, nil
	case s.AvailableReplicas < s.UpdatedReplicas:
		return fmt.Sprintf("Waiting: %d of %d machines are available", s.AvailableReplicas, s.UpdatedReplicas), false, nil
	default:
		return fmt.Sprintf("machinedeployment %q is rolled out", md.Name), true, nil
	}
}
