package driver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/driverstatus"
)

func TestStatusFollowsTheDriver(t *testing.T) {
	path := socketPath(t)
	began := time.Now()
	r := start(t, Config{}, path)
	r.awaitStatuses(t, driverstatus.Driver{Name: driverName, Address: "unix://" + path, Reason: connection.NotConnected})

	server := newFakeDriver().serve(t, path)
	r.awaitStatusChange(t)
	ready := driverstatus.Driver{
		Name: driverName, Address: "unix://" + path, Ready: true, Version: "v1", Features: []string{"LIST"}, MaxConcurrentRequests: 64,
	}
	r.awaitStatuses(t, ready)

	server.Stop()
	r.awaitStatusChange(t)
	away := ready
	away.Ready, away.Reason = false, connection.NotConnected
	r.awaitStatuses(t, away)
	if since := r.drivers.Statuses()[0].Since.Time; since.Before(began) || since.After(time.Now()) {
		t.Errorf("it is away since %s; the test began at %s", since, began)
	}
}

// awaitStatusChange waits until the drivers' status is said to have changed.
func (r *rig) awaitStatusChange(t *testing.T) {
	t.Helper()
	select {
	case <-r.drivers.Changed():
	case <-time.After(patience):
		t.Fatal("no word of a change")
	}
}

// awaitStatuses waits until the drivers' status has this driver alone, since whenever.
func (r *rig) awaitStatuses(t *testing.T, want driverstatus.Driver) {
	t.Helper()
	for {
		diff := cmp.Diff([]driverstatus.Driver{want}, r.drivers.Statuses(), cmpopts.IgnoreTypes(metav1.Time{}))
		if diff == "" {
			return
		}
		select {
		case <-r.drivers.Changed():
		case <-time.After(patience):
			t.Fatalf("status (-want +got):\n%s", diff)
		}
	}
}

func TestStatusHoldsNoArguments(t *testing.T) {
	drivers, err := New(Config{ClusterUID: clusterUID}, []Target{{Name: driverName, Address: "exec:///driver?arg=--token=s3cr3t"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := drivers.Statuses()[0].Address; got != "exec:///driver" {
		t.Errorf("address %q", got)
	}
}
