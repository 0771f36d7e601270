package openstacksim

import (
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	gophertrunks "github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/trunks"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

func TestFloatingIPs(t *testing.T) {
	w := open(t, Options{})
	p, err := w.createPort("a")
	if err != nil {
		t.Fatalf("create port: %v", err)
	}
	create := func() (*floatingips.FloatingIP, error) {
		return floatingips.Create(t.Context(), w.network, floatingips.CreateOpts{FloatingNetworkID: w.externalID(), PortID: p.ID, Description: "d"}).Extract()
	}
	first, err := create()
	if err != nil || first.Status != "DOWN" {
		t.Fatalf("first: %+v, %v", first, err)
	}
	if first, err = floatingips.Get(t.Context(), w.network, first.ID).Extract(); err != nil || first.Status != "ACTIVE" {
		t.Errorf("a moment later: %+v, %v", first, err)
	}
	if _, err := create(); !gophercloud.ResponseCodeIs(err, 409) || !strings.Contains(err.Error(), "FloatingIPPortAlreadyAssociated") {
		t.Errorf("second: %v", err)
	}
	if n := len(w.cloud.neutron.FloatingIPs.Ordered); n != 1 {
		t.Errorf("%d floating IPs", n)
	}
	none := ""
	if moved, err := floatingips.Update(t.Context(), w.network, first.ID, floatingips.UpdateOpts{PortID: &none}).Extract(); err != nil || moved.PortID != "" {
		t.Errorf("take it from the port: %+v, %v", moved, err)
	}
	if _, err := create(); err != nil {
		t.Errorf("another one: %v", err)
	}
	w.check([]apiCase{
		{"by description", "GET", "/networking/v2.0/floatingips?description=d&description=e", "", 200, first.ID},
		{"by another", "GET", "/networking/v2.0/floatingips?description=e", "", 200, `{"floatingips":[]}`},
		{"by port", "GET", "/networking/v2.0/floatingips?port_id=" + p.ID, "", 200, p.ID},
	})
}

func TestFloatingIPsNeedARouter(t *testing.T) {
	w := open(t, Options{})
	id := func(got answer, kind string) string { return got.body[kind].(map[string]any)["id"].(string) }
	network := id(w.call("POST", "/networking/v2.0/networks", `{"network": {"name": "n"}}`), "network")
	subnet := id(w.call("POST", "/networking/v2.0/subnets", `{"subnet": {"network_id": "`+network+`", "cidr": "10.200.0.0/29", "ip_version": 4}}`), "subnet")
	port := id(w.call("POST", "/networking/v2.0/ports", `{"port": {"network_id": "`+network+`"}}`), "port")
	floating := `{"floatingip": {"floating_network_id": "` + w.externalID() + `", "port_id": "` + port + `"}}`
	w.check([]apiCase{
		{"without a router", "POST", "/networking/v2.0/floatingips", floating, 404, "is not reachable from subnet " + subnet + ".  Therefore, cannot associate Port " + port + " with a Floating IP."},
	})
	router := id(w.call("POST", "/networking/v2.0/routers", `{"router": {"name": "r", "external_gateway_info": {"network_id": "`+w.externalID()+`"}}}`), "router")
	w.check([]apiCase{
		{"connect", "PUT", "/networking/v2.0/routers/" + router + "/add_router_interface", `{"subnet_id": "` + subnet + `"}`, 200, subnet},
		{"with a router", "POST", "/networking/v2.0/floatingips", floating, 201, router},
		{"port of the router", "DELETE", "/networking/v2.0/ports/" + state.NamedID("router port", router+subnet), "", 409, "ServicePortInUse"},
		{"router in use", "DELETE", "/networking/v2.0/routers/" + router, "", 409, "RouterInUse"},
		{"network in use", "DELETE", "/networking/v2.0/networks/" + network, "", 409, "NetworkInUse"},
		{"subnet in use", "DELETE", "/networking/v2.0/subnets/" + subnet, "", 409, "SubnetInUse"},
		{"disconnect", "PUT", "/networking/v2.0/routers/" + router + "/remove_router_interface", `{"subnet_id": "` + subnet + `"}`, 200, subnet},
		{"delete router", "DELETE", "/networking/v2.0/routers/" + router, "", 204, ""},
		{"delete port", "DELETE", "/networking/v2.0/ports/" + port, "", 204, ""},
		{"delete network", "DELETE", "/networking/v2.0/networks/" + network, "", 204, ""},
	})
}

func TestAddressesRunOut(t *testing.T) {
	w := open(t, Options{World: World{
		Regions: []string{"RegionOne"}, Zones: []string{"nova"}, Projects: []Project{{Name: "demo"}},
		Networks: []Network{{Name: "demo-net", Project: "demo", Subnets: []Subnet{{Name: "s", CIDR: "10.0.0.0/29"}}}},
	}})
	var ids []string
	// Of eight addresses one is the network's, one the gateway's, one for DHCP, and one the
	// broadcast's.
	for n := range 4 {
		p, err := w.createPort(uid(n))
		if err != nil {
			t.Fatalf("port %d: %v", n, err)
		}
		ids = append(ids, p.ID)
	}
	if _, err := w.createPort("more"); !gophercloud.ResponseCodeIs(err, 409) || !strings.Contains(err.Error(), "IpAddressGenerationFailure") {
		t.Errorf("one more: %v", err)
	}
	w.call("DELETE", "/networking/v2.0/ports/"+ids[1], "")
	if _, err := w.createPort("more"); err != nil {
		t.Errorf("when one is free again: %v", err)
	}
}

// Who owns a network sees what other projects have on it, who shares it only what is his.
func TestPortsOnASharedNetwork(t *testing.T) {
	w := open(t, Options{World: World{
		Regions: []string{"RegionOne"}, Zones: []string{"nova"}, Projects: []Project{{Name: "demo"}, {Name: "alt"}},
		Networks: []Network{{Name: "net", Project: "demo", Shared: true, Subnets: []Subnet{{Name: "s", CIDR: "10.0.0.0/24"}}}},
	}})
	create := func(name string) {
		t.Helper()
		body := `{"port": {"name": "` + name + `", "network_id": "` + w.given("demo", "net") + `"}}`
		if got := w.call("POST", "/networking/v2.0/ports", body); got.status != 201 {
			t.Fatalf("%d %s", got.status, got.raw)
		}
	}
	list := func(query string) (names []string) {
		for _, p := range w.call("GET", "/networking/v2.0/ports?name=owners&name=guests&fields=name&sort_key=name&sort_dir=asc"+query, "").body["ports"].([]any) {
			names = append(names, p.(map[string]any)["name"].(string))
		}
		return names
	}
	create("owners")
	owner := w.cloud.keystone.ProjectID("demo")
	w.login("alt")
	create("guests")
	if got := list(""); !slices.Equal(got, []string{"guests"}) {
		t.Errorf("the guest sees %q", got)
	}
	w.login("demo")
	if got := list(""); !slices.Equal(got, []string{"guests", "owners"}) {
		t.Errorf("the owner sees %q", got)
	}
	if got := list("&project_id=" + owner); !slices.Equal(got, []string{"owners"}) {
		t.Errorf("of his own the owner sees %q", got)
	}
}

func TestTrunks(t *testing.T) {
	w := open(t, Options{})
	p, err := w.createPort("a")
	if err != nil {
		t.Fatalf("create port: %v", err)
	}
	k, err := gophertrunks.Create(t.Context(), w.network, gophertrunks.CreateOpts{PortID: p.ID, Name: "k"}).Extract()
	if err != nil || k.Status != "ACTIVE" {
		t.Fatalf("create: %+v, %v", k, err)
	}
	if n := w.left("a"); n != 2 {
		t.Errorf("the machine has %d resources", n)
	}
	w.check([]apiCase{
		{"second", "POST", "/networking/v2.0/trunks", `{"trunk": {"port_id": "` + p.ID + `"}}`, 409, "ParentPortInUse"},
		{"its port tells", "GET", "/networking/v2.0/ports/" + p.ID, "", 200, `"trunk_details":{"sub_ports":[],"trunk_id":"` + k.ID + `"}`},
		{"its port stays", "DELETE", "/networking/v2.0/ports/" + p.ID, "", 409, "Port " + p.ID + " is currently a parent port for trunk " + k.ID + "."},
		{"by port", "GET", "/networking/v2.0/trunks?port_id=" + p.ID, "", 200, k.ID},
		{"delete", "DELETE", "/networking/v2.0/trunks/" + k.ID, "", 204, ""},
		{"delete again", "DELETE", "/networking/v2.0/trunks/" + k.ID, "", 404, "TrunkNotFound"},
		{"its port goes", "DELETE", "/networking/v2.0/ports/" + p.ID, "", 204, ""},
	})
}

func TestSecurityGroups(t *testing.T) {
	w := open(t, Options{})
	made := w.call("POST", "/networking/v2.0/security-groups", `{"security_group": {"name": "g"}}`)
	id := made.body["security_group"].(map[string]any)["id"].(string)
	w.check([]apiCase{
		{"default", "GET", "/networking/v2.0/security-groups?name=default", "", 200, `"description":"Default security group"`},
		{"a second default", "POST", "/networking/v2.0/security-groups", `{"security_group": {"name": "default"}}`, 409, "SecurityGroupDefaultAlreadyExists"},
		{"used", "POST", "/networking/v2.0/ports", `{"port": {"network_id": "` + networkID(w) + `", "security_groups": ["` + id + `"]}}`, 201, `"security_groups":["` + id + `"]`},
		{"delete what is used", "DELETE", "/networking/v2.0/security-groups/" + id, "", 409, "SecurityGroupInUse"},
		{"none", "POST", "/networking/v2.0/ports", `{"port": {"network_id": "` + networkID(w) + `", "port_security_enabled": false}}`, 201, `"security_groups":[]`},
		{"pairs", "POST", "/networking/v2.0/ports", `{"port": {"network_id": "` + networkID(w) + `", "mac_address": "0a:00:00:00:00:01", "allowed_address_pairs": [{"ip_address": "10.9.0.0/16"}]}}`, 201, `"allowed_address_pairs":[{"ip_address":"10.9.0.0/16","mac_address":"0a:00:00:00:00:01"}]`},
	})
}

func TestUpdatedPorts(t *testing.T) {
	w := open(t, Options{})
	p, err := w.createPort("a")
	if err != nil {
		t.Fatalf("create port: %v", err)
	}
	w.check([]apiCase{
		{"name", "PUT", "/networking/v2.0/ports/" + p.ID, `{"port": {"name": "n", "device_id": "reserved"}}`, 200, `"device_id":"reserved"`},
		{"by name", "GET", "/networking/v2.0/ports?name=n", "", 200, p.ID},
		{"tags", "PUT", "/networking/v2.0/ports/" + p.ID + "/tags", `{"tags": ["t"]}`, 200, `{"tags":["t"]}`},
		{"by tag", "GET", "/networking/v2.0/ports?tags=t", "", 200, p.ID},
		{"by another tag", "GET", "/networking/v2.0/ports?tags-any=x,y", "", 200, `{"ports":[]}`},
		{"free", "PUT", "/networking/v2.0/ports/" + p.ID, `{"port": {"device_id": "", "security_groups": []}}`, 200, `"security_groups":[]`},
	})
	if _, err := w.createServer("a", p.ID); err != nil {
		t.Errorf("a server on it: %v", err)
	}
}
