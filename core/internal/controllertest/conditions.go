package controllertest

import (
	"context"
	"sync"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Reasons are those that a condition had.
type Reasons struct {
	mu  sync.Mutex
	had map[string]bool
}

// Had says whether the condition had that reason since it was watched.
func (r *Reasons) Had(reason string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.had[reason]
}

// Conditions watches a condition of a deployment from now on.
func (c *Cluster) Conditions(t *testing.T, md *clusterv1alpha1.MachineDeployment, kind string) *Reasons {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w, err := c.Watch(ctx, &clusterv1alpha1.MachineDeploymentList{}, client.InNamespace(md.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	name := md.Name
	reasons := &Reasons{had: map[string]bool{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			seen, ok := e.Object.(*clusterv1alpha1.MachineDeployment)
			if !ok || seen.Name != name {
				continue
			}
			if is := apimeta.FindStatusCondition(seen.Status.Conditions, kind); is != nil {
				reasons.mu.Lock()
				reasons.had[is.Reason] = true
				reasons.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		w.Stop()
		<-done
	})
	return reasons
}
