package openstacksim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// readNetworks reads what networks and ports a server is asked for with.
func readNetworks(t *turn, r *serverRequest) ([]networkInterface, error) {
	raw := r.Networks
	if word, isText := textOf(raw); isText {
		if t.version >= networksRequired && word == "none" {
			return []networkInterface{}, nil
		}
		if t.version >= networksRequired && word == "auto" {
			return nil, nil
		}
		return nil, invalid("networks", word, pythonic(raw)+" is not valid under any of the given schemas")
	}
	if raw == nil {
		return nil, nil
	}
	var wanted []interfaceRequest
	malformed := invalid("networks", pythonic(raw), pythonic(raw)+" is not valid under any of the given schemas")
	if err := json.Unmarshal(raw, &wanted); err != nil {
		return nil, malformed
	}
	interfaces := []networkInterface{}
	seen := map[string]bool{}
	for _, w := range wanted {
		i, err := w.read()
		if err != nil {
			return nil, err
		}
		if !isUUID(i.Port + i.Network) {
			return nil, malformed
		}
		if i.Port != "" && seen[i.Port] {
			return nil, refuse(http.StatusBadRequest, "Port ID '%s' was specified twice: you cannot attach a port multiple times.", i.Port)
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

func (w interfaceRequest) read() (networkInterface, error) {
	switch {
	case w.Port != nil && *w.Port != "" && w.Address != "":
		return networkInterface{}, refuse(http.StatusBadRequest,
			"Specified Fixed IP '%s' cannot be used with port '%s': the two cannot be specified together.", w.Address, *w.Port)
	case w.Port != nil:
		return networkInterface{Port: *w.Port}, nil
	case w.UUID != nil:
		return networkInterface{Network: *w.UUID, Address: w.Address}, nil
	}
	return networkInterface{}, refuse(http.StatusBadRequest, "Bad network format: missing 'uuid'")
}

// checkInterfaces returns an error when the server cannot have the ports and networks that it was
// asked for with. Nova sees whether a port is used, and marks it as used only later.
func (c *Cloud) checkInterfaces(t *turn, s *server) error {
	if s.Interfaces == nil {
		return c.chooseNetwork(t, s)
	}
	made := int64(0)
	for _, i := range s.Interfaces {
		if i.Port == "" {
			if err := c.checkNetworkOf(t, i.Network); err != nil {
				return err
			}
			made++
			continue
		}
		p := c.ports.byID[i.Port]
		switch {
		case p == nil || !t.sees(p.Project):
			return refuse(http.StatusBadRequest, "Port id %s could not be found.", i.Port)
		case p.DeviceID != "":
			return refuse(http.StatusConflict, "Port %s is still in use.", i.Port)
		case len(p.FixedIPs) == 0:
			return refuse(http.StatusBadRequest, "Port %s requires a FixedIP in order to be used.", i.Port)
		}
	}
	if made > 0 && c.exceeds(s.Project, kindPort, c.ports.used[s.Project], made) {
		return refuse(http.StatusForbidden, "Maximum number of ports exceeded")
	}
	return nil
}

func (c *Cloud) checkNetworkOf(t *turn, id string) error {
	n := c.networks.byID[id]
	switch {
	case n == nil || !n.seenBy(t):
		return refuse(http.StatusBadRequest, "Network %s could not be found.", id)
	case n.External && !t.admin():
		return refuse(http.StatusForbidden, "It is not allowed to create an interface on external network %s", id)
	case c.subnets.count(byNetwork, id) == 0:
		return refuse(http.StatusBadRequest, "Network %s requires a subnet in order to boot instances on.", id)
	}
	return nil
}

// chooseNetwork takes the only network that there is.
func (c *Cloud) chooseNetwork(t *turn, s *server) error {
	s.Interfaces = []networkInterface{}
	for _, n := range c.networks.ordered {
		if !n.External && (n.Project == t.project() || n.Shared) {
			s.Interfaces = append(s.Interfaces, networkInterface{Network: n.ID})
		}
	}
	if len(s.Interfaces) > 1 {
		return refuse(http.StatusConflict, "Multiple possible networks found, use a Network ID to be more specific.")
	}
	return nil
}

// bind has the server's ports know of it, and makes those that were asked for by their network.
// Where two servers were asked for with one port before either was bound, the second one fails, and
// takes the port from the first: that one runs then, without addresses.
func (c *Cloud) bind(s *server) error {
	for n := range s.Interfaces {
		i := &s.Interfaces[n]
		if i.Port == "" {
			p, err := c.portFor(s, i)
			if err != nil {
				return err
			}
			i.Port, i.Made = p.ID, true
		}
		p := c.ports.byID[i.Port]
		switch {
		case p == nil:
			return fmt.Errorf("Port id %s could not be found.", i.Port) //nolint:revive,staticcheck // Nova's words
		case p.DeviceID != "" && p.DeviceID != s.ID || c.outrun(s, p):
			return fmt.Errorf("Port %s is still in use.", i.Port) //nolint:revive,staticcheck // Nova's words
		}
		p.DeviceID, p.DeviceOwner = s.ID, "compute:"+s.Zone
		c.touchPort(p)
	}
	s.Bound, s.BoundAt = true, testcloud.Now()
	return nil
}

// outrun says whether another server has got the port since this one was asked for, also if it has
// lost it again.
func (c *Cloud) outrun(s *server, p *port) bool {
	if c.options.BindLatency <= 0 {
		return false
	}
	return slices.ContainsFunc(c.alive.ordered, func(other *server) bool {
		return other != s && other.Bound && other.BoundAt.After(s.Created) && slices.Contains(other.portIDs(), p.ID)
	})
}

// portFor makes the port of a server that was asked for with a network.
func (c *Cloud) portFor(s *server, i *networkInterface) (*port, error) {
	p := &port{record: c.newRecord(s.Project, ""), Network: i.Network, Secure: true, Groups: s.Groups, Owner: s.Owner}
	wishes := []ipWish{}
	if i.Address != "" {
		wishes = append(wishes, ipWish{Address: i.Address})
	}
	if err := c.address(p, wishes); err != nil {
		return nil, err
	}
	p.MAC = c.freeMAC(p.Network)
	c.putPort(p)
	return p, nil
}

// plug has the ports of a server that runs be active.
func (c *Cloud) plug(s *server) {
	for _, id := range s.portIDs() {
		if p := c.ports.byID[id]; p != nil && p.DeviceID == s.ID {
			p.Active = true
			c.touchPort(p)
		}
	}
}

// unbind has a port forget its server; one that Nova made goes.
func (c *Cloud) unbind(p *port, made bool) {
	if made {
		c.dropPort(p)
		return
	}
	p.DeviceID, p.DeviceOwner, p.Active = "", "", false
	c.touchPort(p)
}
