package openstacksim

import (
	"fmt"
	"net/netip"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// beforeAll is below the number of everything that was ever made.
const beforeAll = -1 << 40

// givenRecord is that of a resource of the world. Its number does not depend on what was made: the
// world may be another one the next time.
func (c *Cloud) givenRecord(kind, id, name, project string) record {
	c.given++
	at := testcloud.Now()
	r := record{Seq: beforeAll + c.given, ID: id, Project: project, Name: name, Created: at, Updated: at, Given: true}
	if id == "" {
		r.ID = namedID(kind, project+"/"+name)
	}
	return r
}

// found makes what the world has.
func (c *Cloud) found(w World) error {
	for _, p := range w.Projects {
		c.foundProject(p)
	}
	for _, f := range w.Flavors {
		c.foundFlavor(f)
	}
	for _, i := range w.Images {
		c.foundImage(i)
	}
	for _, n := range w.Networks {
		if err := c.foundNetwork(n); err != nil {
			return err
		}
	}
	c.foundRouters()
	for _, g := range w.SecurityGroups {
		c.securityGroups.put(&securityGroup{record: c.givenRecord("security group", g.ID, g.Name, c.projectID(g.Project))})
	}
	for _, g := range w.ServerGroups {
		c.serverGroups.put(&serverGroup{record: c.givenRecord("server group", g.ID, g.Name, c.projectID(g.Project)), Policy: g.Policy})
	}
	for _, name := range w.VolumeTypes {
		c.volumeTypes = append(c.volumeTypes, volumeType{ID: namedID("volume type", name), Name: name})
	}
	return nil
}

func (c *Cloud) foundNetwork(w Network) error {
	n := &network{record: c.givenRecord("network", w.ID, w.Name, c.projectID(w.Project)), External: w.External, Shared: w.Shared}
	c.networks.put(n)
	for _, s := range w.Subnets {
		prefix, err := netip.ParsePrefix(s.CIDR)
		if err != nil {
			return fmt.Errorf("subnet %s of network %s: %w", s.Name, w.Name, err)
		}
		c.subnets.put(newSubnet(c.givenRecord("subnet", s.ID, s.Name, n.Project), n.ID, prefix))
	}
	return nil
}

// foundRouters gives each project a router to each external network, on all its subnets: the first
// as their gateway, the others at an address of their own.
func (c *Cloud) foundRouters() {
	var external []*network
	for _, n := range c.networks.ordered {
		if n.External {
			external = append(external, n)
		}
	}
	names := map[string]string{}
	for _, u := range c.users {
		names[u.ProjectID] = u.ProjectName
	}
	for _, s := range c.subnets.ordered {
		if c.networks.byID[s.Network].External {
			continue
		}
		for number, outside := range external {
			r := c.foundRouter(s.Project, names[s.Project]+"-"+outside.Name, outside)
			p := &port{record: c.givenRecord("router port", "", "", r.ID+s.ID), Network: s.Network}
			address := s.Gateway
			if number > 0 {
				p.Name = "router-" + outside.Name
				address, _ = s.take() // a subnet without room is the world's own fault
			}
			c.connect(r, s, p, address)
		}
	}
}

func (c *Cloud) foundRouter(project, name string, outside *network) *router {
	given := c.givenRecord("router", "", name, project)
	if r := c.routers.byID[given.ID]; r != nil {
		return r
	}
	r := &router{record: given, External: outside.ID}
	if ip, err := c.external(outside); err == nil {
		r.Gateway = []fixedIP{ip}
	}
	c.routers.put(r)
	return r
}
