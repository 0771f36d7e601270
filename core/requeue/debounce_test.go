package requeue

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

func TestOwnerOfManyObjectsRests(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		objects int
		want    time.Duration
	}{
		"no object":                            {0, 0},
		"few enough for the event delay alone": {250, 0},
		"a thousand":                           {1000, 150 * time.Millisecond},
		"more than the longest rest":           {100_000, longestRest - EventDelay},
		"just enough for the longest rest":     {5000, longestRest - EventDelay},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var d Debounce
			set := &clusterv1alpha1.MachineSet{}
			set.Name, set.Generation = "set", 1
			if wait := d.Wait(set, start); wait != 0 {
				t.Errorf("a set that was never reconciled rests %s", wait)
			}
			d.Record(set, tc.objects, start)
			if wait := d.Wait(set, start); wait != tc.want {
				t.Errorf("it rests %s, want %s", wait, tc.want)
			}
			if wait := d.Wait(set, start.Add(tc.want)); wait != 0 {
				t.Errorf("after its rest it rests %s more", wait)
			}
			set.Generation = 2
			if wait := d.Wait(set, start); wait != 0 {
				t.Errorf("with a new generation the set rests %s", wait)
			}
			set.Generation = 1
			d.Forget(client.ObjectKeyFromObject(set))
			if wait := d.Wait(set, start); wait != 0 {
				t.Errorf("after Forget a set of the same name rests %s", wait)
			}
		})
	}
}
