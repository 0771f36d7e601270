package compute

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/network"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// readNetworks reads what networks and ports a server is asked for with.
func readNetworks(call *api.Call, r *serverRequest) ([]NetworkInterface, error) {
	raw := r.Networks
	if word, isText := api.TextOf(raw); isText {
		if call.Version >= networksRequired && word == "none" {
			return []NetworkInterface{}, nil
		}
		if call.Version >= networksRequired && word == "auto" {
			return nil, nil
		}
		return nil, api.Invalid("networks", word, api.Pythonic(raw)+" is not valid under any of the given schemas")
	}
	if raw == nil {
		return nil, nil
	}
	var wanted []interfaceRequest
	malformed := api.Invalid("networks", api.Pythonic(raw), api.Pythonic(raw)+" is not valid under any of the given schemas")
	if err := json.Unmarshal(raw, &wanted); err != nil {
		return nil, malformed
	}
	interfaces := []NetworkInterface{}
	seen := map[string]bool{}
	for _, w := range wanted {
		i, err := w.read()
		if err != nil {
			return nil, err
		}
		if !state.IsUUID(i.Port + i.Network) {
			return nil, malformed
		}
		if i.Port != "" && seen[i.Port] {
			return nil, api.Refuse(http.StatusBadRequest, "Port ID '%s' was specified twice: you cannot attach a port multiple times.", i.Port)
		}
		seen[i.Port] = true
		interfaces = append(interfaces, i)
	}
	return interfaces, nil
}

// interfaceRequest is one of the networks of POST /servers.
type interfaceRequest struct {
	UUID    *string `json:"uuid"`
	Port    *string `json:"port"`
	Address string  `json:"fixed_ip"`
}

func (w interfaceRequest) read() (NetworkInterface, error) {
	switch {
	case w.Port != nil && *w.Port != "" && w.Address != "":
		return NetworkInterface{}, api.Refuse(http.StatusBadRequest,
			"Specified Fixed IP '%s' cannot be used with port '%s': the two cannot be specified together.", w.Address, *w.Port)
	case w.Port != nil:
		return NetworkInterface{Port: *w.Port}, nil
	case w.UUID != nil:
		return NetworkInterface{Network: *w.UUID, Address: w.Address}, nil
	}
	return NetworkInterface{}, api.Refuse(http.StatusBadRequest, "Bad network format: missing 'uuid'")
}

// checkInterfaces returns an error when the server cannot have the ports and networks that it was
// asked for with. Nova sees whether a port is used, and marks it as used only later.
func checkInterfaces(nova *Nova, call *api.Call, s *Server) error {
	if s.Interfaces == nil {
		return chooseNetwork(nova, call, s)
	}
	made := int64(0)
	for _, i := range s.Interfaces {
		if i.Port == "" {
			if err := checkNetworkOf(nova, call, i.Network); err != nil {
				return err
			}
			made++
			continue
		}
		p := nova.neutron.Ports.ByID[i.Port]
		switch {
		case p == nil || !call.Sees(p.Project):
			return api.Refuse(http.StatusBadRequest, "Port id %s could not be found.", i.Port)
		case p.DeviceID != "":
			return api.Refuse(http.StatusConflict, "Port %s is still in use.", i.Port)
		case len(p.FixedIPs) == 0:
			return api.Refuse(http.StatusBadRequest, "Port %s requires a FixedIP in order to be used.", i.Port)
		}
	}
	if made > 0 && nova.neutron.ExceedsPorts(s.Project, made) {
		return api.Refuse(http.StatusForbidden, "Maximum number of ports exceeded")
	}
	return nil
}

func checkNetworkOf(nova *Nova, call *api.Call, id string) error {
	n := nova.neutron.Networks.ByID[id]
	switch {
	case n == nil || !n.SeenBy(call):
		return api.Refuse(http.StatusBadRequest, "Network %s could not be found.", id)
	case n.External && !call.Admin():
		return api.Refuse(http.StatusForbidden, "It is not allowed to create an interface on external network %s", id)
	case nova.neutron.Subnets.Count(network.ByNetwork, id) == 0:
		return api.Refuse(http.StatusBadRequest, "Network %s requires a subnet in order to boot instances on.", id)
	}
	return nil
}

// chooseNetwork takes the only network that there is.
func chooseNetwork(nova *Nova, call *api.Call, s *Server) error {
	s.Interfaces = []NetworkInterface{}
	for _, n := range nova.neutron.Networks.Ordered {
		if !n.External && (n.Project == call.Project() || n.Shared) {
			s.Interfaces = append(s.Interfaces, NetworkInterface{Network: n.ID})
		}
	}
	if len(s.Interfaces) > 1 {
		return api.Refuse(http.StatusConflict, "Multiple possible networks found, use a Network ID to be more specific.")
	}
	return nil
}

// bind has the server's ports know of it, and makes those that were asked for by their network.
// Where two servers were asked for with one port before either was bound, the second one fails, and
// takes the port from the first: that one runs then, without addresses.
func (nova *Nova) bind(s *Server) error {
	for n := range s.Interfaces {
		i := &s.Interfaces[n]
		if i.Port == "" {
			p, err := portFor(nova, s, i)
			if err != nil {
				return err
			}
			i.Port, i.Made = p.ID, true
		}
		p := nova.neutron.Ports.ByID[i.Port]
		switch {
		case p == nil:
			return fmt.Errorf("Port id %s could not be found.", i.Port) //nolint:revive,staticcheck // Nova's words
		case p.DeviceID != "" && p.DeviceID != s.ID || outrun(nova, s, p):
			return fmt.Errorf("Port %s is still in use.", i.Port) //nolint:revive,staticcheck // Nova's words
		}
		p.DeviceID, p.DeviceOwner = s.ID, "compute:"+s.Zone
		nova.neutron.TouchPort(p)
	}
	s.Bound, s.BoundAt = true, testcloud.Now()
	return nil
}

// outrun says whether another server has got the port since this one was asked for, also if it has
// lost it again.
func outrun(nova *Nova, s *Server, p *network.Port) bool {
	if nova.options.BindLatency <= 0 {
		return false
	}
	return slices.ContainsFunc(nova.Servers.Alive.Ordered, func(other *Server) bool {
		return other != s && other.Bound && other.BoundAt.After(s.Created) && slices.Contains(other.PortIDs(), p.ID)
	})
}

// portFor makes the port of a server that was asked for with a network.
func portFor(nova *Nova, s *Server, i *NetworkInterface) (*network.Port, error) {
	p := &network.Port{Record: nova.store.NewRecord(s.Project, ""), Network: i.Network, Secure: true, Groups: s.Groups, Owner: s.Owner}
	wishes := []network.AddressRequest{}
	if i.Address != "" {
		wishes = append(wishes, network.AddressRequest{Address: i.Address})
	}
	if err := nova.neutron.Assign(p, wishes); err != nil {
		return nil, err
	}
	p.MAC = nova.neutron.FreeMAC(p.Network)
	nova.neutron.AddPort(p)
	return p, nil
}

// plug has the ports of a server that runs be active.
func (nova *Nova) plug(s *Server) {
	for _, id := range s.PortIDs() {
		if p := nova.neutron.Ports.ByID[id]; p != nil && p.DeviceID == s.ID {
			p.Active = true
			nova.neutron.TouchPort(p)
		}
	}
}

// unbind has a port forget its server; one that Nova made goes.
func (nova *Nova) unbind(p *network.Port, made bool) {
	if made {
		nova.neutron.DeletePort(p)
		return
	}
	p.DeviceID, p.DeviceOwner, p.Active = "", "", false
	nova.neutron.TouchPort(p)
}

// listInterfaces implements GET /servers/{id}/os-interface.
func listInterfaces(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findServer(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	views := []api.Object{}
	for _, p := range nova.neutron.Ports.With(network.ByDevice, s.ID) {
		ips := []api.Object{}
		for _, ip := range p.FixedIPs {
			ips = append(ips, api.Object{"subnet_id": ip.Subnet, "ip_address": ip.Address})
		}
		views = append(views, api.Object{"port_id": p.ID, "net_id": p.Network, "mac_addr": p.MAC, "port_state": p.Status(), "fixed_ips": ips})
	}
	return api.OK(api.Object{"interfaceAttachments": views})
}
