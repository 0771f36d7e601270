package driver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-dev/millwright/core/roster"
)

func TestTheRosterFollowsTheDriver(t *testing.T) {
	path := socketPath(t)
	began := time.Now()
	r := start(t, Config{}, path)
	r.awaitRoster(t, roster.Driver{Name: driverName, Address: "unix://" + path, Reason: notConnected})

	server := newFakeDriver().serve(t, path)
	r.awaitNews(t)
	ready := roster.Driver{
		Name: driverName, Address: "unix://" + path, Ready: true, Version: "v1", Features: []string{"LIST"}, MaxConcurrentRequests: 64,
	}
	r.awaitRoster(t, ready)

	server.Stop()
	r.awaitNews(t)
	away := ready
	away.Ready, away.Reason = false, notConnected
	r.awaitRoster(t, away)
	if since := r.drivers.Roster()[0].Since.Time; since.Before(began) || since.After(time.Now()) {
		t.Errorf("it is away since %s; the test began at %s", since, began)
	}
}

// awaitNews waits until the roster is said to have changed.
func (r *rig) awaitNews(t *testing.T) {
	t.Helper()
	select {
	case <-r.drivers.Changed():
	case <-time.After(patience):
		t.Fatal("no word of a change")
	}
}

// awaitRoster waits until the roster has this driver alone, since whenever.
func (r *rig) awaitRoster(t *testing.T, want roster.Driver) {
	t.Helper()
	for {
		diff := cmp.Diff([]roster.Driver{want}, r.drivers.Roster(), cmpopts.IgnoreTypes(metav1.Time{}))
		if diff == "" {
			return
		}
		select {
		case <-r.drivers.Changed():
		case <-time.After(patience):
			t.Fatalf("roster (-want +got):\n%s", diff)
		}
	}
}

func TestTheRosterTellsNoArguments(t *testing.T) {
	drivers, err := New(Config{ClusterUID: clusterUID}, []Target{{Name: driverName, Address: "exec:///driver?arg=--token=s3cr3t"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := drivers.Roster()[0].Address; got != "exec:///driver" {
		t.Errorf("address %q", got)
	}
}
