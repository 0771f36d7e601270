package network

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// Port is a port of Neutron.
type Port struct {
	state.Record
	Network     string    `json:"network"`
	MAC         string    `json:"mac"`
	FixedIPs    []FixedIP `json:"fixedIPs,omitempty"`
	DeviceID    string    `json:"deviceID,omitempty"`
	DeviceOwner string    `json:"deviceOwner,omitempty"`
	Active      bool      `json:"active,omitempty"`
	// Secure says that port security is on; Groups are ids.
	Secure  bool            `json:"secure,omitempty"`
	Groups  []string        `json:"groups,omitempty"`
	Pairs   []AddressPair   `json:"pairs,omitempty"`
	VNIC    string          `json:"vnic,omitempty"`
	Profile json.RawMessage `json:"profile,omitempty"`
	Down    bool            `json:"down,omitempty"`
	Revised int             `json:"revised,omitempty"`
	Owner   state.Owner     `json:"owner,omitzero"`
}

// FixedIP is an address of a port, in a subnet.
type FixedIP struct {
	Subnet  string `json:"subnet_id"`
	Address string `json:"ip_address"`
}

// AddressPair is one that a port may use besides its own addresses.
type AddressPair struct {
	IP  string `json:"ip_address"`
	MAC string `json:"mac_address,omitempty"`
}

// Keys implements state.Resource.
func (p *Port) Keys() []state.Key {
	return []state.Key{
		{state.ByName, p.Name}, {ByDescription, p.Description}, {ByMAC, p.MAC}, {ByDevice, p.DeviceID}, {ByNetwork, p.Network},
		{ByDeviceOwner, p.DeviceOwner},
	}
}

var ports = collection[*Port]{
	one: "port", many: "ports", inventory: func(neutron *Neutron) *state.Inventory[*Port] { return neutron.Ports },
	filters: []string{
		"network_id", "mac_address", "device_id", "device_owner", "fixed_ips", "admin_state_up", "security_groups", "binding:vnic_type", "binding:host_id",
		"port_security_enabled", "ip_allocation",
	},
	indexed:  []string{state.ByName, ByDescription, ByMAC, ByDevice, ByNetwork, ByDeviceOwner},
	sortable: []string{"network_id", "mac_address", "device_id", "device_owner"},
	visible:  func(call *api.Call, p *Port) bool { return call.Sees(p.Project) },
	view:     portView,
	missing: func(id string) error {
		return refuseAs(http.StatusNotFound, "PortNotFound", "Port %s could not be found.", id)
	},
}

// listPorts implements GET /v2.0/ports.
func listPorts(neutron *Neutron, call *api.Call) (api.Reply, error) {
	return shownPorts(neutron).list(neutron, call)
}

// getPort implements GET /v2.0/ports/{id}.
func getPort(neutron *Neutron, call *api.Call) (api.Reply, error) {
	return shownPorts(neutron).get(neutron, call)
}

// shownPorts are those that the caller may see: his own, and all on a network that he owns.
func shownPorts(neutron *Neutron) collection[*Port] {
	k := ports
	k.visible = func(call *api.Call, p *Port) bool {
		n := neutron.Networks.ByID[p.Network]
		return call.Sees(p.Project) || n != nil && n.Project == call.Project()
	}
	return k
}

func portView(neutron *Neutron, call *api.Call, p *Port) api.Object {
	view := neutronView(&p.Record, p.Revised)
	ips, pairs := []api.Object{}, []api.Object{}
	for _, ip := range p.FixedIPs {
		ips = append(ips, api.Object{"subnet_id": ip.Subnet, "ip_address": ip.Address})
	}
	for _, pair := range p.Pairs {
		pairs = append(pairs, api.Object{"ip_address": pair.IP, "mac_address": pair.MAC})
	}
	maps.Copy(view, api.Object{
		"network_id": p.Network, "mac_address": p.MAC, "admin_state_up": !p.Down, "status": p.Status(), "device_id": p.DeviceID, "device_owner": p.DeviceOwner,
		"fixed_ips": ips, "port_security_enabled": p.Secure, "security_groups": append([]string{}, p.Groups...), "binding:vnic_type": p.vnic(),
		"allowed_address_pairs": pairs, "extra_dhcp_opts": []api.Object{},
	})
	if call.Admin() {
		view["binding:host_id"], view["binding:vif_type"], view["binding:vif_details"] = p.host(), "unbound", api.Object{}
		view["binding:profile"] = api.Object{}
		if p.Profile != nil {
			view["binding:profile"] = p.Profile
		}
	}
	if trunks := neutron.Trunks.With(ByPort, p.ID); len(trunks) > 0 {
		view["trunk_details"] = trunkDetails(neutron, trunks[0])
	}
	return view
}

// Status is that of Neutron.
func (p *Port) Status() string {
	if p.Active {
		return "ACTIVE"
	}
	return "DOWN"
}

func (p *Port) vnic() string {
	if p.VNIC == "" {
		return "normal"
	}
	return p.VNIC
}

func (p *Port) host() string {
	if p.DeviceID == "" {
		return ""
	}
	return "compute1"
}

// AddPort takes in a port that is new.
func (neutron *Neutron) AddPort(p *Port) {
	neutron.store.Reached(p.Seq)
	for _, ip := range p.FixedIPs {
		if s := neutron.Subnets.ByID[ip.Subnet]; s != nil {
			s.mark(ip.Address)
		}
	}
	neutron.Ports.Put(p)
	rememberPort(neutron, p)
}

// rememberPort remembers whose a port is, and whose its names are.
func rememberPort(neutron *Neutron, p *Port) {
	neutron.store.Owners.Set(p.ID, p.Owner)
	if p.Owner == (state.Owner{}) {
		return
	}
	neutron.store.Owners.SetName(p.MAC, p.Owner)
	if parts := strings.Split(p.Name, "/"); len(parts) == 3 && parts[1] != "" {
		neutron.store.Owners.SetName(parts[1], p.Owner)
	}
}

// TouchPort notes that a port has changed.
func (neutron *Neutron) TouchPort(p *Port) {
	p.Updated = testcloud.Now()
	p.Revised++
	neutron.Ports.Put(p)
}

// DeletePort takes a port away. Its floating IPs stay, and its trunk goes with it.
func (neutron *Neutron) DeletePort(p *Port) {
	for _, ip := range p.FixedIPs {
		neutron.Release(ip)
	}
	for _, f := range neutron.FloatingIPs.With(ByPort, p.ID) {
		dissociate(neutron, f)
	}
	neutron.Ports.Remove(p.ID)
	if neutron.notifier != nil {
		neutron.notifier.PortDeleted(p)
	}
}

// deletePort implements DELETE /v2.0/ports/{id}. A port of a server can be deleted.
func deletePort(neutron *Neutron, call *api.Call) (api.Reply, error) {
	p, err := ports.find(neutron, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	if strings.HasPrefix(p.DeviceOwner, "network:") {
		return api.Reply{}, refuseAs(http.StatusConflict, "ServicePortInUse",
			"Port %s cannot be deleted directly via the port API: has device owner %s.", p.ID, p.DeviceOwner)
	}
	if trunks := neutron.Trunks.With(ByPort, p.ID); len(trunks) > 0 {
		return api.Reply{}, refuseAs(http.StatusConflict, "PortInUseAsTrunkParent", "Port %s is currently a parent port for trunk %s.", p.ID, trunks[0].ID)
	}
	neutron.DeletePort(p)
	call.Changed(p.ID)
	return api.WithStatus(http.StatusNoContent, nil)
}

// updatePort implements PUT /v2.0/ports/{id}.
func updatePort(neutron *Neutron, call *api.Call) (api.Reply, error) {
	p, err := ports.find(neutron, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	a, err := readAttributes(call, "port", portAttributes)
	if err != nil {
		return api.Reply{}, err
	}
	changed := *p
	if err := describePort(neutron, call, a, &changed, "update_port"); err != nil {
		return api.Reply{}, err
	}
	for name, into := range map[string]*string{"name": &changed.Name, "description": &changed.Description, "device_id": &changed.DeviceID, "device_owner": &changed.DeviceOwner} {
		if a.has(name) {
			*into = a.text(name)
		}
	}
	*p = changed
	p.Owner = state.OwnerOfText(p.Name, p.Description)
	neutron.store.Owners.Set(p.ID, p.Owner)
	neutron.TouchPort(p)
	call.Changed(p.ID)
	return api.OK(api.Object{"port": portView(neutron, call, p)})
}
