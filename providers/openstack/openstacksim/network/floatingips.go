package network

import (
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// FloatingIP is a floating IP of Neutron.
type FloatingIP struct {
	state.Record
	Network string      `json:"network"`
	Subnet  string      `json:"subnet"`
	Address string      `json:"address"`
	Port    string      `json:"port,omitempty"`
	FixedIP string      `json:"fixedIP,omitempty"`
	Router  string      `json:"router,omitempty"`
	Active  bool        `json:"active,omitempty"`
	Revised int         `json:"revised,omitempty"`
	Owner   state.Owner `json:"owner,omitzero"`
}

// Keys implements state.Resource.
func (f *FloatingIP) Keys() []state.Key {
	return []state.Key{{ByDescription, f.Description}, {ByPort, f.Port}, {"floating_ip_address", f.Address}, {"floating_network_id", f.Network}}
}

var floatingIPs = collection[*FloatingIP]{
	one: "floatingip", many: "floatingips", inventory: func(neutron *Neutron) *state.Inventory[*FloatingIP] { return neutron.FloatingIPs },
	filters:  []string{"floating_network_id", "floating_ip_address", "port_id", "router_id", "fixed_ip_address"},
	indexed:  []string{ByDescription, ByPort, "floating_ip_address", "floating_network_id"},
	sortable: []string{"floating_ip_address", "floating_network_id", "router_id", "fixed_ip_address"},
	visible:  func(call *api.Call, f *FloatingIP) bool { return call.Sees(f.Project) },
	view:     floatingIPView,
	missing: func(id string) error {
		return refuseAs(http.StatusNotFound, "FloatingIPNotFound", "Floating IP %s could not be found", id)
	},
}

func floatingIPView(neutron *Neutron, _ *api.Call, f *FloatingIP) api.Object {
	view := neutronView(&f.Record, f.Revised)
	delete(view, "name")
	status := "DOWN"
	if f.Port != "" && f.Active {
		status = "ACTIVE"
	}
	maps.Copy(view, api.Object{
		"floating_ip_address": f.Address, "floating_network_id": f.Network, "router_id": api.TextOrNil(f.Router), "port_id": api.TextOrNil(f.Port),
		"fixed_ip_address": api.TextOrNil(f.FixedIP), "status": status, "dns_domain": "", "dns_name": "", "port_details": nil,
	})
	if p := neutron.Ports.ByID[f.Port]; p != nil {
		view["port_details"] = api.Object{
			"name": p.Name, "network_id": p.Network, "mac_address": p.MAC, "admin_state_up": !p.Down, "status": p.Status(), "device_id": p.DeviceID,
			"device_owner": p.DeviceOwner,
		}
	}
	return view
}

var floatingIPAttributes = []string{
	"floating_network_id", "port_id", "fixed_ip_address", "floating_ip_address", "subnet_id", "description", "tenant_id", "project_id", "dns_name",
	"dns_domain",
}

// createFloatingIP implements POST /v2.0/floatingips.
func createFloatingIP(neutron *Neutron, call *api.Call) (api.Reply, error) {
	a, err := readAttributes(call, "floatingip", floatingIPAttributes)
	if err != nil {
		return api.Reply{}, err
	}
	id, err := a.id("floating_network_id")
	if err != nil {
		return api.Reply{}, err
	}
	if !a.has("floating_network_id") {
		return api.Reply{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Failed to parse request. Required attribute 'floating_network_id' not specified")
	}
	if _, err := a.id("port_id"); err != nil {
		return api.Reply{}, err
	}
	f := &FloatingIP{Record: neutron.store.NewRecord(a.project(call), ""), Network: id}
	f.Description = a.text("description")
	f.Owner = state.OwnerOfDescription(f.Description)
	if neutron.store.Quotas.Exceeds(f.Project, state.KindFloatingIP, neutron.FloatingIPs.Used[f.Project], 1) {
		return api.Reply{}, overQuota("floatingip")
	}
	n, err := networks.find(neutron, call, id)
	if err != nil {
		return api.Reply{}, err
	}
	if !n.External {
		return api.Reply{}, refuseAs(http.StatusBadRequest, "BadRequest", "Bad floatingip request: Network %s is not a valid external network.", id)
	}
	taken, err := external(neutron, n)
	if err != nil {
		return api.Reply{}, err
	}
	f.Subnet, f.Address = taken.Subnet, taken.Address
	if err := associate(neutron, call, f, a); err != nil {
		neutron.Release(taken)
		return api.Reply{}, err
	}
	neutron.FloatingIPs.Put(f)
	neutron.store.Owners.Set(f.ID, f.Owner)
	call.Changed(f.ID)
	answer := api.Object{"floatingip": floatingIPView(neutron, call, f)}
	if f.Port != "" {
		// It is up a moment later.
		f.Active = true
		f.Revised++
	}
	return api.WithStatus(http.StatusCreated, answer)
}

// external takes an address of an external network.
func external(neutron *Neutron, n *Network) (FixedIP, error) {
	for _, s := range neutron.Subnets.With(ByNetwork, n.ID) {
		if address, free := s.take(); free {
			return FixedIP{Subnet: s.ID, Address: address}, nil
		}
	}
	return FixedIP{}, exhausted(n.ID)
}

// associate points the floating IP to the port that is asked for; none is fine.
func associate(neutron *Neutron, call *api.Call, f *FloatingIP, a attributes) error {
	f.Port, f.FixedIP, f.Router = "", "", ""
	if !a.has("port_id") {
		return nil
	}
	p, err := ports.find(neutron, call, a.text("port_id"))
	if err != nil {
		return err
	}
	if len(p.FixedIPs) == 0 {
		return refuseAs(http.StatusBadRequest, "BadRequest",
			"Bad floatingip request: Cannot add floating IP to port %s that has no fixed IPv4 addresses.", p.ID)
	}
	ip := p.FixedIPs[0]
	if wanted := a.text("fixed_ip_address"); wanted != "" {
		for _, one := range p.FixedIPs {
			if one.Address == wanted {
				ip = one
			}
		}
	}
	router, reachable := routerBetween(neutron, ip.Subnet, f.Network)
	if !reachable {
		return refuseAs(http.StatusNotFound, "ExternalGatewayForFloatingIPNotFound", "External network %s is not reachable from subnet %s.  "+
			"Therefore, cannot associate Port %s with a Floating IP.", f.Network, ip.Subnet, p.ID)
	}
	for _, other := range neutron.FloatingIPs.With(ByPort, p.ID) {
		if other.ID != f.ID && other.FixedIP == ip.Address && other.Network == f.Network {
			return refuseAs(http.StatusConflict, "FloatingIPPortAlreadyAssociated", "Cannot associate floating IP %s (%s) with port %s using fixed IP %s, as "+
				"that fixed IP already has a floating IP on external network %s.", f.Address, f.ID, p.ID, ip.Address, f.Network)
		}
	}
	f.Port, f.FixedIP, f.Router, f.Active = p.ID, ip.Address, router, f.Given || neutron.FloatingIPs.ByID[f.ID] != nil
	return nil
}

// dissociate has the floating IP point to nothing.
func dissociate(neutron *Neutron, f *FloatingIP) {
	f.Port, f.FixedIP, f.Router = "", "", ""
	f.Updated = testcloud.Now()
	f.Revised++
	neutron.FloatingIPs.Put(f)
}

// checkRevision refuses a change of another revision than the one that If-Match names.
func checkRevision(call *api.Call, revision int) error {
	wanted, named := strings.CutPrefix(call.Request.Header.Get("If-Match"), "revision_number=")
	if !named || wanted == strconv.Itoa(revision) {
		return nil
	}
	return refuseAs(http.StatusPreconditionFailed, "RevisionNumberConstraintFailed", "Constrained to %s, but current revision is %d", wanted, revision)
}

// updateFloatingIP implements PUT /v2.0/floatingips/{id}.
func updateFloatingIP(neutron *Neutron, call *api.Call) (api.Reply, error) {
	f, err := floatingIPs.find(neutron, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	if err := checkRevision(call, f.Revised); err != nil {
		return api.Reply{}, err
	}
	a, err := readAttributes(call, "floatingip", floatingIPAttributes)
	if err != nil {
		return api.Reply{}, err
	}
	if _, given := a["port_id"]; given {
		changed := *f
		if err := associate(neutron, call, &changed, a); err != nil {
			return api.Reply{}, err
		}
		*f = changed
		if f.Port != "" {
			f.Revised++ // it is up a moment later
		}
	}
	if a.has("description") {
		f.Description = a.text("description")
		f.Owner = state.OwnerOfDescription(f.Description)
		neutron.store.Owners.Set(f.ID, f.Owner)
	}
	f.Updated = testcloud.Now()
	f.Revised++
	neutron.FloatingIPs.Put(f)
	call.Changed(f.ID)
	return api.OK(api.Object{"floatingip": floatingIPView(neutron, call, f)})
}

// deleteFloatingIP implements DELETE /v2.0/floatingips/{id}.
func deleteFloatingIP(neutron *Neutron, call *api.Call) (api.Reply, error) {
	f, err := floatingIPs.find(neutron, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	neutron.Release(FixedIP{Subnet: f.Subnet, Address: f.Address})
	neutron.FloatingIPs.Remove(f.ID)
	call.Changed(f.ID)
	return api.WithStatus(http.StatusNoContent, nil)
}
