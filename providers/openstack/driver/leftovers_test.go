package driver

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
)

// What a list has shown to be left of a machine goes without being asked for again.
func TestDeleteGoesByTheList(t *testing.T) {
	w := newWorld(t, openstacksim.Options{})
	spec := map[string]any{"floatingIpPool": "ext-net"}
	w.created("one", spec)
	w.created("other", spec)
	<-time.After(settle)
	if m, err := w.delete("one"); err != nil || m == nil {
		t.Fatalf("the server goes first: %v, %v", m, err)
	}
	for deadline := time.Now().Add(10 * time.Second); w.left()["vm"] > 1; {
		if time.Now().After(deadline) {
			t.Fatal("the server stays")
		}
	}
	if _, err := w.ListMachines(t.Context(), &driverv1alpha1.ListMachinesRequest{Meta: meta(), Provider: w.provider(nil), PageSize: 100}); err != nil {
		t.Fatal(err)
	}
	before := w.calls()
	if m, err := w.delete("one"); err != nil || m != nil {
		t.Fatalf("the rest: %v, %v", m, err)
	}
	after := w.calls()
	maps.DeleteFunc(after, func(operation string, n int64) bool { return before[operation] == n })
	if n := len(after); n != 2 || after["DeletePort"] != before["DeletePort"]+1 || after["DeleteFloatingIP"] != before["DeleteFloatingIP"]+1 {
		t.Errorf("it asked for %v, before that for %v", after, before)
	}
	if diff := cmp.Diff(map[string]int{"vm": 1, "port": 1, "floatingip": 1}, w.left()); diff != "" {
		t.Errorf("left are (-want +got):\n%s", diff)
	}
}

func TestRemnantsCountWhereNothingCanHaveCome(t *testing.T) {
	const settle = time.Minute
	owner := ownership.Owner{Cluster: "c", Namespace: "n", Name: "m", UID: "u"}
	scope := machineScope{Owner: owner}
	left := map[string]*ownedResources{"u": {Owner: owner, ports: []port{{ID: "p"}}}}
	// Each begins an hour after the process did.
	for name, test := range map[string]struct {
		play func(r *leftovers, wait func(time.Duration))
		want bool
	}{
		"a delete, a list, a delete": {func(r *leftovers, wait func(time.Duration)) {
			r.noteDelete(owner)
			wait(time.Second)
			r.listed(scope.clusterScope(), r.clock(), left)
			wait(time.Second)
		}, true},
		"nobody has deleted it before": {func(r *leftovers, _ func(time.Duration)) {
			r.listed(scope.clusterScope(), r.clock(), left)
		}, false},
		"the list was asked for before": {func(r *leftovers, wait func(time.Duration)) {
			asked := r.clock()
			wait(time.Second)
			r.noteDelete(owner)
			r.listed(scope.clusterScope(), asked, left)
		}, false},
		"the list is old": {func(r *leftovers, wait func(time.Duration)) {
			r.noteDelete(owner)
			wait(time.Second)
			r.listed(scope.clusterScope(), r.clock(), left)
			wait(leftoverLife + time.Second)
		}, false},
		"a create can still be on its way": {func(r *leftovers, wait func(time.Duration)) {
			r.noteCreate(owner)
			wait(settle - 2*time.Second)
			r.noteDelete(owner)
			wait(time.Second)
			r.listed(scope.clusterScope(), r.clock(), left)
		}, false},
		"a create has settled": {func(r *leftovers, wait func(time.Duration)) {
			r.noteCreate(owner)
			wait(settle)
			r.noteDelete(owner)
			wait(time.Second)
			r.listed(scope.clusterScope(), r.clock(), left)
		}, true},
		"another process may have created it": {func(r *leftovers, wait func(time.Duration)) {
			r.started = r.clock()
			r.noteDelete(owner)
			wait(time.Second)
			r.listed(scope.clusterScope(), r.clock(), left)
		}, false},
		"another process may have created it for an earlier leader": {func(r *leftovers, wait func(time.Duration)) {
			r.lead("c", 2)
			r.noteDelete(owner)
			wait(time.Second)
			r.listed(scope.clusterScope(), r.clock(), left)
		}, false},
		"another cluster has another leader": {func(r *leftovers, wait func(time.Duration)) {
			r.lead("d", 2)
			r.noteDelete(owner)
			wait(time.Second)
			r.listed(scope.clusterScope(), r.clock(), left)
		}, true},
		"what an earlier leader asked for has settled": {func(r *leftovers, wait func(time.Duration)) {
			r.lead("c", 2)
			wait(settle)
			r.lead("c", 2)
			r.noteDelete(owner)
			wait(time.Second)
			r.listed(scope.clusterScope(), r.clock(), left)
		}, true},
		"it has a server": {func(r *leftovers, wait func(time.Duration)) {
			r.noteDelete(owner)
			wait(time.Second)
			r.listed(scope.clusterScope(), r.clock(), map[string]*ownedResources{"u": {Owner: owner, ports: []port{{ID: "p"}}, servers: []server{{ID: "s"}}}})
		}, false},
		"another cluster's list": {func(r *leftovers, wait func(time.Duration)) {
			r.noteDelete(owner)
			wait(time.Second)
			r.listed(clusterScope{cluster: "d"}, r.clock(), left)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			r := newLeftovers(Options{CreateSettle: settle, Clock: func() time.Time { return now }})
			wait := func(long time.Duration) { now = now.Add(long) }
			wait(time.Hour)
			test.play(r, wait)
			if found := r.of(scope); (found != nil) != test.want {
				t.Errorf("found %v", found)
			}
		})
	}
}
