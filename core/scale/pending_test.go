package scale

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPendingCountsUntilTheCacheShowsIt(t *testing.T) {
	a, b, goingA, goingB := Machine{UID: "a"}, Machine{UID: "b"}, Machine{UID: "a", Deleting: true}, Machine{UID: "b", Deleting: true}
	for _, tc := range []struct {
		name, why string
		created   []Machine
		deleted   []string
		cached    []Machine
		want      []Machine
		settled   bool
	}{
		{name: "nothing noted", why: "the cache is all there is", cached: []Machine{a, goingB}, want: []Machine{a, goingB}, settled: true},
		{name: "a creation not shown", why: "it is there", created: []Machine{b}, cached: []Machine{a}, want: []Machine{a, b}},
		{name: "a creation shown", why: "it is there once", created: []Machine{b}, cached: []Machine{a, b}, want: []Machine{a, b}, settled: true},
		{name: "a deletion not shown", why: "it is on its way out", deleted: []string{"a"}, cached: []Machine{a, b}, want: []Machine{goingA, b}},
		{name: "a deletion shown", why: "it is on its way out", deleted: []string{"a"}, cached: []Machine{goingA, b}, want: []Machine{goingA, b}, settled: true},
		{name: "another on its way out", why: "what the cache shows holds", deleted: []string{"a"}, cached: []Machine{a, goingB}, want: []Machine{goingA, goingB}},
		{name: "created and deleted, not shown", why: "it is on its way out", created: []Machine{a}, deleted: []string{"a"}, want: []Machine{goingA}},
		{name: "created on its way out, not shown", why: "it was found so", created: []Machine{goingA}, want: []Machine{goingA}},
		{name: "deleted and gone", why: "its deletion is over", deleted: []string{"a"}, cached: []Machine{b}, want: []Machine{b}, settled: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var p Pending
			for _, m := range tc.created {
				p.AddCreated(m)
			}
			for _, uid := range tc.deleted {
				p.AddDeleted(uid)
			}
			if diff := cmp.Diff(tc.want, p.View(tc.cached)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.why, diff)
			}
			if p.IsSettled() != tc.settled {
				t.Errorf("settled is %v", p.IsSettled())
			}
		})
	}
}
