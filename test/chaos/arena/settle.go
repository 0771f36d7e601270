package arena

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// settleLimit bounds the wait after a round; nothing takes as long unless it is stuck.
const settleLimit = 4 * time.Minute

// longWait is after how much of it people want to know what is waited for.
const longWait = 10 * time.Second

const lookInterval = 50 * time.Millisecond

// settle waits until everything is as it should be. It returns what is not when time is up; empty
// if all is well.
func (a *arena) settle(ctx context.Context, atEnd bool) string {
	limit := a.options.patiently(settleLimit) + a.options.Forgetful
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	var wrong error
	long := time.Now().Add(longWait)
	for good := 0; good < 2; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Sprintf("after %s: %v", limit, wrong)
		}
		good++
		if err := errors.Join(a.view.unsettled(), a.unsettledCloud(ctx, atEnd)); err != nil {
			good, wrong = 0, err
		}
		if good == 0 && time.Now().After(long) {
			long = long.Add(longWait)
			fmt.Fprintf(a.options.Out, "           still waiting: %v\n", wrong)
			if err := a.endVolumeWaits(ctx); err != nil {
				return err.Error()
			}
		}
	}
	return ""
}

// unsettled says what is not as its deployment wants it; nil if nothing is.
func (v *view) unsettled() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.unsettledNamespaces(); err != nil {
		return err
	}
	count := map[string]int{}
	for _, m := range v.machines {
		d := v.deploymentOf(m)
		if d == nil {
			return fmt.Errorf("machine %s is left, and is nobody's%s", m.Name, describe(m))
		}
		if !m.DeletionTimestamp.IsZero() {
			return fmt.Errorf("machine %s is being deleted%s", m.Name, describe(m))
		}
		if !meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1alpha1.ConditionReady) {
			return fmt.Errorf("machine %s is not ready%s", m.Name, describe(m))
		}
		count[d.Name]++
	}
	for _, d := range v.deployments {
		s, want := d.Status, *d.Spec.Replicas
		if n := int32(count[d.Name]); n != want || s.Replicas != want || s.UpdatedReplicas != want || s.AvailableReplicas != want || s.ObservedGeneration != d.Generation {
			return fmt.Errorf("deployment %s has %d machines, its status says %d replicas, %d updated, %d available, of generation %d; want %d, of generation %d",
				d.Name, n, s.Replicas, s.UpdatedReplicas, s.AvailableReplicas, s.ObservedGeneration, want, d.Generation)
		}
	}
	for _, set := range v.sets {
		if owner := metav1.GetControllerOf(set); owner == nil || v.deployments[owner.UID] == nil {
			return fmt.Errorf("set %s is left, and is nobody's", set.Name)
		}
	}
	return v.unsettledNodes()
}

// unsettledNamespaces: a namespace that was deleted is gone.
func (v *view) unsettledNamespaces() error {
	for _, n := range v.namespaces {
		if !n.DeletionTimestamp.IsZero() {
			return fmt.Errorf("namespace %s is being deleted: %s", n.Name, v.remaining(n))
		}
	}
	return nil
}

// remaining says what a namespace that is being deleted still holds, and what its Machines have to
// say.
func (v *view) remaining(n *corev1.Namespace) string {
	var b strings.Builder
	for _, c := range n.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			fmt.Fprintf(&b, "%s ", c.Message)
		}
	}
	for _, m := range v.machines {
		if m.Namespace == n.Name {
			b.WriteString(m.Name + describe(m) + " ")
		}
	}
	return b.String()
}

// unsettledNodes: each Node is a Machine's, but the foreign one.
func (v *view) unsettledNodes() error {
	owned := map[string]bool{foreignNode: true}
	for _, m := range v.machines {
		if m.Status.NodeRef != nil {
			owned[m.Status.NodeRef.Name] = true
		}
	}
	for name := range v.nodes {
		if !owned[name] {
			return fmt.Errorf("node %s is left, and is no machine's", name)
		}
	}
	return nil
}

// unsettledCloud returns an error unless the cloud holds what each Machine needs and nothing else
// of this cluster.
func (a *arena) unsettledCloud(ctx context.Context, atEnd bool) error {
	have, err := a.cloud.holds(ctx, atEnd)
	if err != nil {
		return err
	}
	if want := a.view.needs(a.options.Cloud); !maps.Equal(have, want) {
		return fmt.Errorf("the cloud holds %v, and the machines need %v", have, want)
	}
	return nil
}

// describe returns the phase and the conditions of a Machine.
func describe(m *clusterv1alpha1.Machine) string {
	var b strings.Builder
	fmt.Fprintf(&b, " (%s", m.Status.Phase)
	for _, c := range m.Status.Conditions {
		fmt.Fprintf(&b, "; %s=%s %s %q", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String() + ")"
}
