package machine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// TestWhatIsRememberedIsOfOneMachine: what is remembered is of one Machine, not of one name.
func TestWhatIsRememberedIsOfOneMachine(t *testing.T) {
	of := func(uid types.UID) *clusterv1alpha1.Machine {
		return &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: uid}}
	}
	var all machineMemories
	now := time.Now()
	first, _ := all.get(of("one"), now)
	first.lifecycle.Gone = true
	recheckAfter, since := all.get(of("one"), now.Add(time.Hour))
	if recheckAfter != first || !since.Equal(now) {
		t.Errorf("another memory of the same Machine, since %s", since)
	}
	if other, _ := all.get(of("two"), now); other.lifecycle.Gone {
		t.Error("a Machine inherits what is remembered of another one of its name")
	}
}

// TestNothingIsDecidedByAnOlderMachine: nothing is decided by a Machine that is older than our last
// write to it, unless the API server itself has nothing newer.
func TestNothingIsDecidedByAnOlderMachine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m := b.newMachine("a")
	older, newer := m.DeepCopy(), m.DeepCopy()
	older.ResourceVersion = "1"
	const future = "9999999999999"
	newer.ResourceVersion = future
	for name, c := range map[string]struct {
		memory   memory
		shown    *clusterv1alpha1.Machine
		later    time.Duration
		wait     time.Duration
		restored bool
	}{
		"nothing written":                    {shown: m},
		"the cache is up to date":            {memory: memory{version: m.ResourceVersion}, shown: m},
		"the cache is ahead of our write":    {memory: memory{version: m.ResourceVersion}, shown: newer},
		"the cache lags":                     {memory: memory{version: m.ResourceVersion}, shown: older, wait: staleAfter},
		"the cache lags for long":            {memory: memory{version: m.ResourceVersion}, shown: older, later: staleAfter, wait: staleAfter},
		"the write is gone":                  {memory: memory{version: future}, shown: m, later: staleAfter, restored: true},
		"a Machine that is released":         {memory: memory{released: true}, shown: m, wait: staleAfter},
		"a Machine that is released no more": {memory: memory{released: true}, shown: m, later: staleAfter, restored: true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testingclock.NewFakeClock(time.Now())
			r := &reconciler{Options: Options{Clock: clock}, live: server.user}
			mem := c.memory
			mem.lifecycle.Gone = true
			wait, err := r.behind(t.Context(), c.shown, &mem)
			if c.later > 0 {
				clock.SetTime(clock.Now().Add(c.later))
				wait, err = r.behind(t.Context(), c.shown, &mem)
			}
			if err != nil || wait != c.wait {
				t.Errorf("waits %s, %v; want %s", wait, err, c.wait)
			}
			if restored := !mem.lifecycle.Gone; restored != c.restored {
				t.Errorf("started over: %t, want %t", restored, c.restored)
			}
		})
	}
}
