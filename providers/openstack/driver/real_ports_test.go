package driver

import (
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/services"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/portsbinding"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/portsecurity"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// realPort is a port with what extensions tell of it.
type realPort struct {
	ports.Port
	portsbinding.PortsBindingExt
	portsecurity.PortSecurityExt
}

// machinePorts are the machine's.
func (r *realServices) machinePorts() []realPort {
	r.Helper()
	pages, err := ports.List(r.in.Network, ports.ListOpts{Name: r.owner.PortName()}).AllPages(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	var found []realPort
	if err := ports.ExtractPortsInto(pages, &found); err != nil {
		r.Fatal(err)
	}
	return found
}

// computeHost is a host that servers can be on.
func (o *operator) computeHost() string {
	o.Helper()
	pages, err := services.List(o.compute, services.ListOpts{Binary: "nova-compute"}).AllPages(o.Context())
	if err != nil {
		o.Fatal(err)
	}
	hosts, err := services.ExtractServices(pages)
	if err != nil || len(hosts) == 0 {
		o.Fatalf("hosts: %v, %v", hosts, err)
	}
	return hosts[0].Host
}

// A port that an administrator's machine has on a host, with an attribute of one of Neutron's
// extensions. Nova binds it anew with the server, which waits for its volume here.
func TestAdministratorsPortOnRealServices(t *testing.T) {
	member := onRealServices(t, nil)
	host := member.operator().computeHost()
	r := onRealServices(t, map[string]any{
		"username": member.services.Administrator, "projectName": member.services.Administrator, "network": "", "rootDiskSizeGB": 1,
		"ports": []map[string]any{{
			"network": member.services.Member + "-net", "hostID": host,
			"valueSpecs": []map[string]any{{"name": "no addresses checked", "key": "port_security_enabled", "value": "false"}},
		}},
	})
	if _, err := r.create(); status.Code(err) != codes.Aborted {
		t.Fatalf("its volume is being made: %v", err)
	}
	if found := r.machinePorts(); len(found) != 1 || found[0].HostID != host || found[0].PortSecurityEnabled {
		t.Errorf("the ports are %+v, want one on %s without port security", found, host)
	}
	if _, err := r.settled(); err != nil {
		t.Fatal(err)
	}
	r.running()
	r.remove()
}

// Whether a port shows its uplink's state is for an extension that not every Neutron has: true
// unless a port says otherwise. Without it the user gets Neutron's own words.
func TestUplinkOnRealServices(t *testing.T) {
	r := onRealServices(t, nil)
	r.respecify(map[string]any{"network": "", "ports": []map[string]any{{"network": r.services.Member + "-net", "propagateUplinkStatus": false}}})
	var extension map[string]any
	_, err := r.in.Network.Get(t.Context(), r.in.Network.ServiceURL("extensions", "uplink-status-propagation"), &extension, nil) //nolint:bodyclose // gophercloud closes it
	if err != nil {
		if _, err := r.create(); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "propagate_uplink_status") {
			t.Errorf("a Neutron without the extension: %v", err)
		}
		r.remove()
		return
	}
	if _, err := r.settled(); err != nil {
		t.Fatal(err)
	}
	if found := r.machinePorts(); len(found) != 1 || found[0].PropagateUplinkStatus {
		t.Errorf("the ports are %+v", found)
	}
	r.remove()
}
