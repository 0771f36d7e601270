package controllertest

import (
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
	t.Cleanup(func() {
		for name, n := range a.made {
			if n > 1 {
				t.Errorf("%s was created %d times", name, n)
			}
		}
	})
	c.watch(t, &clusterv1alpha1.MachineList{}, func(e watch.Event) {
		if m, ok := e.Object.(*clusterv1alpha1.Machine); ok {
			a.see(e.Type, m)
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

// Reasons are those that a condition had.
type Reasons struct{ had sync.Map }

// Had says whether the condition had that reason since it was watched.
func (r *Reasons) Had(reason string) bool {
	_, had := r.had.Load(reason)
	return had
}

// Conditions watches a condition of a deployment from now on.
func (c *Cluster) Conditions(t *testing.T, md *clusterv1alpha1.MachineDeployment, kind string) *Reasons {
	t.Helper()
	name, reasons := md.Name, &Reasons{}
	c.watch(t, &clusterv1alpha1.MachineDeploymentList{}, func(e watch.Event) {
		seen, ok := e.Object.(*clusterv1alpha1.MachineDeployment)
		if !ok || seen.Name != name {
			return
		}
		if is := apimeta.FindStatusCondition(seen.Status.Conditions, kind); is != nil {
			reasons.had.Store(is.Reason, true)
		}
	})
	return reasons
}

// watch calls see with all events of a kind in the namespace, until the test ends.
func (c *Cluster) watch(t *testing.T, kind client.ObjectList, see func(watch.Event)) {
	t.Helper()
	w, err := c.Watch(t.Context(), kind, client.InNamespace(c.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for e := range w.ResultChan() {
			see(e)
		}
		if t.Context().Err() == nil {
			t.Error("a watch has ended")
		}
	})
	t.Cleanup(func() {
		w.Stop()
		running.Wait()
	})
}
