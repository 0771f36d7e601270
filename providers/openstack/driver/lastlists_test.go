package driver

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
)

// later returns another driver of the world's cloud, and what puts its clock forward by how long a
// create may take to settle there.
func (w *world) later(settle time.Duration) (another *world, later func()) {
	var ahead atomic.Int64
	another = w.another(Options{
		Version: "test", CreateSettle: settle, Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	})
	return another, func() { ahead.Store(int64(settle)) }
}

// askedSince returns what tells which calls came since it was last called, and how many.
func (w *world) askedSince() func() map[string]int64 {
	before := w.calls()
	return func() map[string]int64 {
		now, more := w.calls(), map[string]int64{}
		for operation, n := range now {
			if n > before[operation] {
				more[operation] = n - before[operation]
			}
		}
		before = now
		return more
	}
}

// What a list has shown of a machine goes without being asked for again.
func TestDeleteGoesByTheList(t *testing.T) {
	t.Parallel()
	w, later := newWorld(t, openstacksim.Options{}).later(settle)
	spec := map[string]any{"floatingIpPool": "ext-net"}
	w.created("one", spec)
	w.created("other", spec)
	later() // the creates have settled
	asked := w.askedSince()
	w.list()
	asked()
	if m, err := w.delete("one"); err != nil || m == nil {
		t.Fatalf("the server goes first: %v, %v", m, err)
	}
	if diff := cmp.Diff(map[string]int64{"DeleteServer": 1}, asked()); diff != "" {
		t.Errorf("for the server it asked for (-want +got):\n%s", diff)
	}
	for deadline := time.Now().Add(10 * time.Second); w.left()["vm"] > 1; {
		if time.Now().After(deadline) {
			t.Fatal("the server stays")
		}
	}
	w.list()
	asked()
	if m, err := w.delete("one"); err != nil || m != nil {
		t.Fatalf("the rest: %v, %v", m, err)
	}
	if diff := cmp.Diff(map[string]int64{"DeletePort": 1, "DeleteFloatingIP": 1}, asked()); diff != "" {
		t.Errorf("for the rest it asked for (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"vm": 1, "port": 1, "floatingip": 1}, w.left()); diff != "" {
		t.Errorf("left are (-want +got):\n%s", diff)
	}
}

func TestAListShowsWhatGoesNext(t *testing.T) {
	t.Parallel()
	const settle = time.Minute
	owner := ownership.Owner{Cluster: "c", Namespace: "n", Name: "m", UID: "u"}
	// Times are since an hour after the process started; 0 means never.
	for name, test := range map[string]struct {
		createEnded, deleteEnded time.Duration
		// newLeader is when this process first saw a leader of newLeaderOf.
		newLeader   time.Duration
		newLeaderOf string
		// restarted is when the process started instead.
		restarted time.Duration
		// listAsked is when the list of listOf was asked for, and asked when the machine was.
		listAsked, asked time.Duration
		listOf           string
		hasServer        bool
		want             bool
	}{
		"a delete, a list, a delete":               {deleteEnded: 1 * time.Second, listAsked: 2 * time.Second, asked: 3 * time.Second, listOf: "c", want: true},
		"nobody has deleted it before":             {listAsked: 2 * time.Second, asked: 3 * time.Second, listOf: "c"},
		"the list was asked for before the delete": {listAsked: 1 * time.Second, deleteEnded: 2 * time.Second, asked: 3 * time.Second, listOf: "c"},
		"the list is old":                          {deleteEnded: 1 * time.Second, listAsked: 2 * time.Second, asked: 3*time.Second + lastListLife, listOf: "c"},
		"the list is another cluster's":            {deleteEnded: 1 * time.Second, listAsked: 2 * time.Second, asked: 3 * time.Second, listOf: "d"},
		"it has a server":                          {deleteEnded: 1 * time.Second, listAsked: 2 * time.Second, asked: 3 * time.Second, listOf: "c", hasServer: true, want: true},
		"its server was not deleted before":        {listAsked: 2 * time.Second, asked: 3 * time.Second, listOf: "c", hasServer: true, want: true},
		"its server was deleted after the list":    {listAsked: 1 * time.Second, deleteEnded: 2 * time.Second, asked: 3 * time.Second, listOf: "c", hasServer: true},
		"its server has just been created":         {createEnded: 1 * time.Second, listAsked: 2 * time.Second, asked: 3 * time.Second, listOf: "c", hasServer: true, want: true},
		"a create can still be on its way": {
			createEnded: 1 * time.Second, deleteEnded: settle - 1*time.Second, listAsked: settle, asked: settle, listOf: "c",
		},
		"a create has settled": {
			createEnded: 1 * time.Second, deleteEnded: settle, listAsked: settle + 2*time.Second, asked: settle + 2*time.Second, listOf: "c", want: true,
		},
		"another process may have created it": {
			restarted: 1 * time.Second, deleteEnded: 2 * time.Second, listAsked: 3 * time.Second, asked: 3 * time.Second, listOf: "c",
		},
		"another process may have created it for an earlier leader": {
			newLeader: 1 * time.Second, newLeaderOf: "c", deleteEnded: 2 * time.Second, listAsked: 3 * time.Second, asked: 3 * time.Second, listOf: "c",
		},
		"another cluster has another leader": {
			newLeader: 1 * time.Second, newLeaderOf: "d", deleteEnded: 2 * time.Second, listAsked: 3 * time.Second, asked: 3 * time.Second, listOf: "c", want: true,
		},
		"what an earlier leader asked for has settled": {
			newLeader: 1 * time.Second, newLeaderOf: "c", deleteEnded: settle, listAsked: settle + 2*time.Second, asked: settle + 2*time.Second, listOf: "c", want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			started := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			base, now := started.Add(time.Hour), started
			r := newLastLists(Options{CreateSettle: settle, Clock: func() time.Time { return now }})
			at := func(when time.Duration, do func()) {
				if when > 0 {
					now = base.Add(when)
					do()
				}
			}
			at(test.restarted, func() { r.started = now })
			at(test.newLeader, func() { r.lead(test.newLeaderOf, 2) })
			at(test.createEnded, func() { r.noteCreate(owner) })
			at(test.deleteEnded, func() { r.noteDelete(owner) })
			left := &ownedResources{Owner: owner, ports: []port{{ID: "p"}}}
			if test.hasServer {
				left.servers = []server{{ID: "s"}}
			}
			at(test.listAsked, func() { r.listed(clusterScope{cluster: test.listOf}, now, map[string]*ownedResources{"u": left}) })
			now = base.Add(test.asked)
			if test.newLeader > 0 {
				r.lead(test.newLeaderOf, 2) // the same leader again begins nothing
			}
			if found := r.shownOf(machineScope{owner: owner}); (found != nil) != test.want {
				t.Errorf("found %v", found)
			}
		})
	}
}

// A machine that a list has not shown is made without being looked for.
func TestCreateGoesByTheList(t *testing.T) {
	t.Parallel()
	w, later := newWorld(t, openstacksim.Options{}).later(settle)
	later()
	w.list()
	before := w.calls()
	w.created("one", nil)
	if after := w.calls(); after["ListPorts"] != before["ListPorts"] {
		t.Errorf("it asked for %v, before that for %v", after, before)
	}
	if diff := cmp.Diff(map[string]int{"vm": 1, "port": 1}, w.left()); diff != "" {
		t.Errorf("there are (-want +got):\n%s", diff)
	}
}

// A leader's term begins with its first list, long before its first create.
func TestATermBeginsWithAList(t *testing.T) {
	t.Parallel()
	w, later := newWorld(t, openstacksim.Options{}).later(settle)
	led := meta()
	led.LeaderEpoch = 7
	list := func() {
		if _, err := w.ListMachines(t.Context(), &driverv1alpha1.ListMachinesRequest{Meta: led, Provider: w.provider(nil)}); err != nil {
			t.Fatal(err)
		}
	}
	list()
	later()
	list()
	before := w.calls()
	if _, err := w.CreateMachine(t.Context(), &driverv1alpha1.CreateMachineRequest{Meta: led, Machine: ref("one"), Provider: w.provider(nil)}); err != nil {
		t.Fatal(err)
	}
	if after := w.calls(); after["ListPorts"] != before["ListPorts"] {
		t.Errorf("it asked for %v, before that for %v", after, before)
	}
}

// What another process has made of a machine since the list is found.
func TestCreateAfterAListThatIsOld(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]map[string]any{"own network": nil, "network of another project": {"network": "shared"}} {
		t.Run(name, func(t *testing.T) {
			w, later := newWorld(t, openstacksim.Options{}).later(time.Second)
			later()
			w.list()
			w.inject(&backendv1alpha1.Fault{
				Match: &backendv1alpha1.FaultMatch{Operation: "CreateServer"}, Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, Times: 1,
				Error: &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL},
			})
			other := w.another(Options{CreateSettle: time.Second})
			_, err := other.create("one", more)
			other.refused("a create that the cloud fails", err, driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL)
			_, err = w.create("one", more)
			w.refused("a create while there is a port", err, driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING)
			w.created("one", more)
			if diff := cmp.Diff(map[string]int{"vm": 1, "port": 1}, w.left()); diff != "" {
				t.Errorf("there are (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAListShowsNothing(t *testing.T) {
	t.Parallel()
	const settle = time.Minute
	owner := ownership.Owner{Cluster: "c", Namespace: "n", Name: "m", UID: "u"}
	other := ownership.Owner{Cluster: "c", UID: "v"}
	for name, test := range map[string]struct {
		created, deleted *ownership.Owner
		shows            *ownedResources
		listOf           string
		// sooner is by how much the list came before others had settled.
		sooner time.Duration
		// led says that the first leader came when the process had been there for long.
		led  bool
		age  time.Duration
		want bool
	}{
		"nothing":                               {listOf: "c", want: true},
		"others were worked on":                 {listOf: "c", created: &other, deleted: &other, want: true},
		"it was created":                        {listOf: "c", created: &owner},
		"it was deleted":                        {listOf: "c", deleted: &owner},
		"there is a port":                       {listOf: "c", shows: &ownedResources{ports: []port{{ID: "p"}}}},
		"there is a server":                     {listOf: "c", shows: &ownedResources{servers: []server{{ID: "s"}}}},
		"there is a volume":                     {listOf: "c", shows: &ownedResources{volumes: []volume{{ID: "v"}}}},
		"the list is another's":                 {listOf: "d"},
		"the list is not yet too old":           {listOf: "c", age: lastListLife, want: true},
		"the list is too old":                   {listOf: "c", age: lastListLife + 1},
		"another process may have just made it": {listOf: "c", sooner: 1},
		"another process may have just made it for an earlier leader": {listOf: "c", led: true, sooner: 1},
		"what an earlier leader asked for has settled":                {listOf: "c", led: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			r := newLastLists(Options{CreateSettle: settle, Clock: func() time.Time { return now }})
			if test.created != nil {
				r.noteCreate(*test.created)
			}
			if test.deleted != nil {
				r.noteDelete(*test.deleted)
			}
			shown := map[string]*ownedResources{}
			if test.shows != nil {
				shown["u"] = test.shows
			}
			if test.led {
				now = now.Add(time.Hour)
				r.lead("c", 2)
			}
			now = now.Add(settle - test.sooner)
			r.listed(clusterScope{cluster: test.listOf}, now, shown)
			now = now.Add(test.age)
			if got := r.showNothingOf(machineScope{owner: owner}); got != test.want {
				t.Errorf("shows nothing: %t", got)
			}
		})
	}
}
