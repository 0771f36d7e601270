package openstacksim

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// port is a port of Neutron.
type port struct {
	record
	Network     string    `json:"network"`
	MAC         string    `json:"mac"`
	FixedIPs    []fixedIP `json:"fixedIPs,omitempty"`
	DeviceID    string    `json:"deviceID,omitempty"`
	DeviceOwner string    `json:"deviceOwner,omitempty"`
	Active      bool      `json:"active,omitempty"`
	// Secure says that port security is on; Groups are ids.
	Secure  bool            `json:"secure,omitempty"`
	Groups  []string        `json:"groups,omitempty"`
	Pairs   []addressPair   `json:"pairs,omitempty"`
	VNIC    string          `json:"vnic,omitempty"`
	Profile json.RawMessage `json:"profile,omitempty"`
	Down    bool            `json:"down,omitempty"`
	Tags    []string        `json:"tags,omitempty"`
	Revised int             `json:"revised,omitempty"`
	Owner   owner           `json:"owner,omitzero"`
}

type fixedIP struct {
	Subnet  string `json:"subnet_id"`
	Address string `json:"ip_address"`
}

type addressPair struct {
	IP  string `json:"ip_address"`
	MAC string `json:"mac_address,omitempty"`
}

func (p *port) keys() []key {
	return []key{
		{byName, p.Name}, {byDescription, p.Description}, {byMAC, p.MAC}, {byDevice, p.DeviceID}, {byNetwork, p.Network},
		{byDeviceOwner, p.DeviceOwner},
	}
}

var ports = collection[*port]{
	one: "port", many: "ports", inventory: func(c *Cloud) *inventory[*port] { return c.ports },
	filters: []string{
		"network_id", "mac_address", "device_id", "device_owner", "fixed_ips", "admin_state_up", "security_groups", "binding:vnic_type", "binding:host_id",
		"port_security_enabled", "ip_allocation",
	},
	indexed:  []string{byName, byDescription, byMAC, byDevice, byNetwork, byDeviceOwner},
	sortable: []string{"network_id", "mac_address", "device_id", "device_owner"},
	visible:  func(t *turn, p *port) bool { return t.sees(p.Project) },
	view:     (*Cloud).portView,
	missing: func(id string) error {
		return refuseAs(http.StatusNotFound, "PortNotFound", "Port %s could not be found.", id)
	},
}

// listPorts implements GET /v2.0/ports.
func listPorts(c *Cloud, t *turn) (reply, error) { return shownPorts(c).list(c, t) }

// getPort implements GET /v2.0/ports/{id}.
func getPort(c *Cloud, t *turn) (reply, error) { return shownPorts(c).get(c, t) }

// shownPorts are those that the caller may see: his own, and all on a network that he owns.
func shownPorts(c *Cloud) collection[*port] {
	k := ports
	k.visible = func(t *turn, p *port) bool {
		n := c.networks.byID[p.Network]
		return t.sees(p.Project) || n != nil && n.Project == t.project()
	}
	return k
}

func (c *Cloud) portView(t *turn, p *port) object {
	view := neutronView(&p.record, p.Revised)
	ips, pairs := []object{}, []object{}
	for _, ip := range p.FixedIPs {
		ips = append(ips, object{"subnet_id": ip.Subnet, "ip_address": ip.Address})
	}
	for _, pair := range p.Pairs {
		pairs = append(pairs, object{"ip_address": pair.IP, "mac_address": pair.MAC})
	}
	maps.Copy(view, object{
		"network_id": p.Network, "mac_address": p.MAC, "admin_state_up": !p.Down, "status": p.status(), "device_id": p.DeviceID, "device_owner": p.DeviceOwner,
		"fixed_ips": ips, "port_security_enabled": p.Secure, "security_groups": append([]string{}, p.Groups...), "binding:vnic_type": p.vnic(),
		"allowed_address_pairs": pairs, "extra_dhcp_opts": []object{}, "tags": append([]string{}, p.Tags...),
	})
	if t.admin() {
		view["binding:host_id"], view["binding:vif_type"], view["binding:vif_details"] = p.host(), "unbound", object{}
		view["binding:profile"] = object{}
		if p.Profile != nil {
			view["binding:profile"] = p.Profile
		}
	}
	if trunks := c.trunks.with(byPort, p.ID); len(trunks) > 0 {
		view["trunk_details"] = c.trunkDetails(trunks[0])
	}
	return view
}

func (p *port) status() string {
	if p.Active {
		return "ACTIVE"
	}
	return "DOWN"
}

func (p *port) vnic() string {
	if p.VNIC == "" {
		return "normal"
	}
	return p.VNIC
}

func (p *port) host() string {
	if p.DeviceID == "" {
		return ""
	}
	return "compute1"
}

// putPort takes in a port that is new.
func (c *Cloud) putPort(p *port) {
	c.seq = max(c.seq, p.Seq)
	for _, ip := range p.FixedIPs {
		if s := c.subnets.byID[ip.Subnet]; s != nil {
			s.mark(ip.Address)
		}
	}
	c.ports.put(p)
	c.rememberPort(p)
}

// rememberPort remembers whose a port is, and whose its names are.
func (c *Cloud) rememberPort(p *port) {
	c.own(p.ID, p.Owner)
	if p.Owner == (owner{}) {
		return
	}
	c.nameOwners[p.MAC] = p.Owner
	if parts := strings.Split(p.Name, "/"); len(parts) == 3 && parts[1] != "" {
		c.nameOwners[parts[1]] = p.Owner
	}
}

// touchPort notes that a port has changed.
func (c *Cloud) touchPort(p *port) {
	p.Updated = testcloud.Now()
	p.Revised++
	c.ports.put(p)
}

// dropPort takes a port away. Its floating IPs stay, and its trunk goes with it.
func (c *Cloud) dropPort(p *port) {
	for _, ip := range p.FixedIPs {
		c.free(ip)
	}
	for _, f := range c.floatingIPs.with(byPort, p.ID) {
		c.dissociate(f)
	}
	c.ports.remove(p.ID)
	if s := c.alive.byID[p.DeviceID]; s != nil && s.VMState == vmBuilding && !s.deleting() {
		c.abort(s, s.unconnected())
		c.touch(s)
	}
}

// deletePort implements DELETE /v2.0/ports/{id}. A port of a server can be deleted.
func deletePort(c *Cloud, t *turn) (reply, error) {
	p, err := ports.find(c, t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	if strings.HasPrefix(p.DeviceOwner, "network:") {
		return reply{}, refuseAs(http.StatusConflict, "ServicePortInUse",
			"Port %s cannot be deleted directly via the port API: has device owner %s.", p.ID, p.DeviceOwner)
	}
	if trunks := c.trunks.with(byPort, p.ID); len(trunks) > 0 {
		return reply{}, refuseAs(http.StatusConflict, "PortInUseAsTrunkParent", "Port %s is currently a parent port for trunk %s.", p.ID, trunks[0].ID)
	}
	c.dropPort(p)
	t.Changed(p.ID)
	return with(http.StatusNoContent, nil)
}

// updatePort implements PUT /v2.0/ports/{id}.
func updatePort(c *Cloud, t *turn) (reply, error) {
	p, err := ports.find(c, t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	a, err := readAttributes(t, "port", portAttributes)
	if err != nil {
		return reply{}, err
	}
	changed := *p
	if err := c.describePort(t, a, &changed, "update_port"); err != nil {
		return reply{}, err
	}
	for name, into := range map[string]*string{"name": &changed.Name, "description": &changed.Description, "device_id": &changed.DeviceID, "device_owner": &changed.DeviceOwner} {
		if a.has(name) {
			*into = a.text(name)
		}
	}
	*p = changed
	p.Owner = ownerOfText(p.Name, p.Description)
	c.own(p.ID, p.Owner)
	c.touchPort(p)
	t.Changed(p.ID)
	return ok(object{"port": c.portView(t, p)})
}

// freeMAC returns an address that no port of the network has.
func (c *Cloud) freeMAC(network string) string {
	for {
		n := c.dice.Uint32()
		mac := fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", n>>16&255, n>>8&255, n&255)
		if !c.usesMAC(network, mac) {
			return mac
		}
	}
}

func (c *Cloud) usesMAC(network, mac string) bool {
	for _, p := range c.ports.with(byMAC, strings.ToLower(mac)) {
		if p.Network == network {
			return true
		}
	}
	return false
}
