package controllertest

import (
	"context"
	"sync"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Audit sees every Machine of a namespace come and go, by a watch of its own.
type Audit struct {
	mu    sync.Mutex
	there map[string]*clusterv1alpha1.Machine
	made  map[string]int
	// most is how many Machines there were at once, least how many were available since Floor was
	// called.
	most, least int
	floor       bool
}

// Audit begins.
func (c *Cluster) Audit(t *testing.T) *Audit {
	t.Helper()
	a := &Audit{there: map[string]*clusterv1alpha1.Machine{}, made: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	w, err := c.Watch(ctx, &clusterv1alpha1.MachineList{}, client.InNamespace(c.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if m, ok := e.Object.(*clusterv1alpha1.Machine); ok {
				a.see(e.Type, m)
			}
		}
		if ctx.Err() == nil {
			t.Error("the audit's watch has ended")
		}
	}()
	t.Cleanup(func() {
		cancel()
		w.Stop()
		<-done
		for name, n := range a.made {
			if n > 1 {
				t.Errorf("%s was created %d times", name, n)
			}
		}
	})
	return a
}

func (a *Audit) see(kind watch.EventType, m *clusterv1alpha1.Machine) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch kind {
	case watch.Added:
		a.made[m.Name]++
		a.there[m.Name] = m
	case watch.Deleted:
		delete(a.there, m.Name)
	default:
		a.there[m.Name] = m
	}
	a.most = max(a.most, len(a.there))
	if a.floor {
		a.least = min(a.least, a.available())
	}
}

func (a *Audit) available() int {
	n := 0
	for _, m := range a.there {
		if m.DeletionTimestamp.IsZero() && apimeta.IsStatusConditionTrue(m.Status.Conditions, clusterv1alpha1.ConditionReady) {
			n++
		}
	}
	return n
}

// Most is how many Machines there were at once.
func (a *Audit) Most() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.most
}

// Made is how many Machines were ever created.
func (a *Audit) Made() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.made)
}

// WatchFloor begins to note how few Machines are available.
func (a *Audit) WatchFloor() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.floor, a.least = true, a.available()
}

// Least is how few Machines were available since WatchFloor.
func (a *Audit) Least() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.least
}
