package fleet

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

func TestPace(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		objects int
		want    time.Duration
	}{
		"no object":                                {0, 0},
		"few, for whom gathering is rest enough":   {250, 0},
		"a thousand":                               {1000, 150 * time.Millisecond},
		"so many that nobody would wait for it":    {100_000, longestRest - gather},
		"as many as the longest rest is meant for": {5000, longestRest - gather},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var p Pace
			set := &clusterv1alpha1.MachineSet{}
			set.Name, set.Generation = "set", 1
			if wait := p.Wait(set, start); wait != 0 {
				t.Errorf("a set that was never reconciled waits %s", wait)
			}
			p.Note(set, tc.objects, start)
			if wait := p.Wait(set, start); wait != tc.want {
				t.Errorf("it waits %s, want %s", wait, tc.want)
			}
			if wait := p.Wait(set, start.Add(tc.want)); wait != 0 {
				t.Errorf("after its rest it waits %s more", wait)
			}
			set.Generation = 2
			if wait := p.Wait(set, start); wait != 0 {
				t.Errorf("a change of the set itself waits %s", wait)
			}
			set.Generation = 1
			p.Forget(client.ObjectKeyFromObject(set))
			if wait := p.Wait(set, start); wait != 0 {
				t.Errorf("another set of the name of one that is gone waits %s", wait)
			}
		})
	}
}
