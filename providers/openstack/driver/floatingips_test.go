package driver

import (
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
	"github.com/millwright-dev/millwright/providers/openstack/session"
)

// allocate makes floating IPs of the project that are nobody's, and returns their addresses.
func (w *world) allocate(in *session.Session, n int) []string {
	w.Helper()
	pool, err := in.ExternalNetworkID(w.Context(), "", "ext-net")
	if err != nil {
		w.Fatal(err)
	}
	var addresses []string
	for range n {
		made, err := floatingips.Create(w.Context(), in.Network, floatingips.CreateOpts{FloatingNetworkID: pool, Description: "the user's"}).Extract()
		if err != nil {
			w.Fatal(err)
		}
		addresses = append(addresses, made.FloatingIP)
	}
	return addresses
}

// free are the addresses of the project's floating IPs that no port has.
func (w *world) free(in *session.Session) []string {
	w.Helper()
	all, err := floatingIPsListed(w.Context(), in, url.Values{})
	if err != nil {
		w.Fatal(err)
	}
	var free []string
	for _, f := range all {
		if f.PortID == "" {
			free = append(free, f.IP)
		}
	}
	slices.Sort(free)
	return free
}

// Machines that are made at once borrow a floating IP each of those that the project has, one goes
// without where there are too few, and all are there when the machines are gone.
func TestFloatingIPsAreBorrowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	in := w.session("")
	addresses := w.allocate(in, 3)
	slices.Sort(addresses)
	spec := map[string]any{"floatingIPs": addresses}
	names := []string{"one", "two", "three"}
	var wait sync.WaitGroup
	for _, name := range names {
		wait.Go(func() {
			if _, err := w.settled(name, spec); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wait.Wait()
	if left := w.free(in); len(left) > 0 {
		t.Fatalf("free are %v", left)
	}
	w.created("one", spec)
	_, err := w.create("late", spec)
	w.refused("a machine too many", err, driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE)
	for _, name := range names {
		w.gone(name)
	}
	w.created("late", spec)
	w.leavesNothing("late")
	if diff := cmp.Diff(addresses, w.free(in)); diff != "" {
		t.Errorf("the user's (-want +got):\n%s", diff)
	}
}

// A floating IP of the pool that is free goes before a new one, and stays; the new one goes.
func TestFloatingIPsAreReused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	in := w.session("")
	addresses := w.allocate(in, 1)
	spec := map[string]any{"floatingIpPool": "ext-net", "floatingIpReuse": true}
	w.created("one", spec)
	w.created("two", spec)
	if diff := cmp.Diff(map[string]int{"vm": 2, "port": 2, "floatingip": 1}, w.left()); diff != "" {
		t.Errorf("there are (-want +got):\n%s", diff)
	}
	w.gone("one")
	w.leavesNothing("two")
	if diff := cmp.Diff(addresses, w.free(in)); diff != "" {
		t.Errorf("the user's (-want +got):\n%s", diff)
	}
}
