package openstacksim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// kindOf names the kind of a resource in the journal.
func kindOf(r resource) string {
	switch r.(type) {
	case *server:
		return "server"
	case *serverGroup:
		return "serverGroup"
	case *network:
		return "network"
	case *subnet:
		return "subnet"
	case *port:
		return "port"
	case *securityGroup:
		return "securityGroup"
	case *floatingIP:
		return "floatingIP"
	case *trunk:
		return "trunk"
	case *router:
		return "router"
	case *volume:
		return "volume"
	default:
		return "given" // flavors and images: nobody changes them
	}
}

// eachRest calls add with everything but servers.
func (c *Cloud) eachRest(add func(resource)) {
	each(c.serverGroups, add)
	each(c.networks, add)
	each(c.subnets, add)
	each(c.ports, add)
	each(c.securityGroups, add)
	each(c.floatingIPs, add)
	each(c.trunks, add)
	each(c.routers, add)
	each(c.volumes, add)
}

func each[T resource](inv *inventory[T], add func(resource)) {
	for _, one := range inv.ordered {
		add(one)
	}
}

// restore takes in one entry.
func (c *Cloud) restore(e entry) error {
	if e.Totals != nil {
		c.restoreTotals(e.Totals)
	}
	for _, one := range e.Items {
		if err := c.restoreItem(one, e.UserData); err != nil {
			return fmt.Errorf("%s %s: %w", one.Kind, one.ID, err)
		}
	}
	for _, one := range e.Tokens {
		if one.user = c.users[one.UserID]; one.user != nil {
			c.tokens[one.ID] = one
		}
	}
	for _, one := range e.Credentials {
		if c.users[one.UserID] != nil {
			c.credentials[one.ID] = one
		}
	}
	for _, id := range e.Revoked {
		delete(c.tokens, id)
		delete(c.credentials, id)
	}
	if e.Quota != nil {
		c.quota, c.quotaSet = e.Quota, true
	}
	if e.ProjectQuotas != nil {
		c.projectQuotas = e.ProjectQuotas
	}
	for _, one := range e.Calls {
		c.front.Ledger.Restore(one)
	}
	return nil
}

func (c *Cloud) restoreItem(i item, userData map[string]string) error {
	switch i.Kind {
	case "server":
		return c.restoreServer(i, userData)
	case "serverGroup":
		return restoreInto(c, c.serverGroups, i)
	case "network":
		return restoreInto(c, c.networks, i)
	case "subnet":
		return restoreInto(c, c.subnets, i)
	case "port":
		return restoreInto(c, c.ports, i)
	case "securityGroup":
		return restoreInto(c, c.securityGroups, i)
	case "floatingIP":
		return restoreInto(c, c.floatingIPs, i)
	case "trunk":
		return restoreInto(c, c.trunks, i)
	case "router":
		return restoreInto(c, c.routers, i)
	case "volume":
		return restoreInto(c, c.volumes, i)
	}
	return nil
}

// restoreInto takes in a resource as it was written, in the place of what it was before.
func restoreInto[T any, P interface {
	*T
	resource
}](c *Cloud, inv *inventory[P], i item) error {
	if i.Gone {
		inv.remove(i.ID)
		return nil
	}
	one := P(new(T))
	if err := json.Unmarshal(i.Raw, one); err != nil {
		return err
	}
	inv.remove(i.ID)
	inv.put(one)
	c.seq = max(c.seq, one.base().Seq)
	return nil
}

// restoreServer takes in a server as it was written. User data is written once, and goes with the
// server.
func (c *Cloud) restoreServer(i item, userData map[string]string) error {
	s := &server{userData: userData[i.ID]}
	if err := json.Unmarshal(i.Raw, s); err != nil {
		return err
	}
	if old := c.servers[s.Seq]; old != nil {
		if s.userData == "" {
			s.userData = old.userData
		}
		if !old.gone() {
			c.alive.remove(old.ID)
			c.countAlive(old, -1)
		}
		if old.gone() {
			c.buried = slices.DeleteFunc(c.buried, func(other *server) bool { return other == old })
		}
	}
	if s.gone() {
		s.userData = ""
	}
	c.putServer(s)
	return nil
}

func (c *Cloud) restoreTotals(t *totals) {
	c.seq = max(c.seq, t.Seq)
	for cluster, n := range t.Peak {
		c.peak[cluster] = max(c.peak[cluster], n)
	}
	maps.Copy(c.owners, t.Owners)
	c.front.Ledger.RestoreTotals(t.LedgerTotals)
}

// restoreHistory puts the servers back into the order of their last changes.
func (c *Cloud) restoreHistory() {
	ordered := make([]*server, 0, len(c.servers))
	for _, s := range c.servers {
		ordered = append(ordered, s)
	}
	slices.SortFunc(ordered, func(a, b *server) int { return cmp.Compare(a.Revision, b.Revision) })
	for _, s := range ordered {
		c.history.Restore(s.Revision, s.Seq)
	}
	slices.SortFunc(c.buried, func(a, b *server) int { return a.Updated.Compare(b.Updated) })
}

// restoreAddresses marks what is in use, and remembers whose everything is.
func (c *Cloud) restoreAddresses() {
	mark := func(subnet, address string) {
		if s := c.subnets.byID[subnet]; s != nil {
			s.mark(address)
		}
	}
	for _, p := range c.ports.ordered {
		for _, ip := range p.FixedIPs {
			mark(ip.Subnet, ip.Address)
		}
		c.rememberPort(p)
	}
	for _, r := range c.routers.ordered {
		for _, ip := range r.Gateway {
			mark(ip.Subnet, ip.Address)
		}
	}
	for _, f := range c.floatingIPs.ordered {
		mark(f.Subnet, f.Address)
		c.own(f.ID, f.Owner)
	}
	for _, v := range c.volumes.ordered {
		c.own(v.ID, v.Owner)
		if v.Status == volumeCreating {
			c.armVolume(v)
		}
	}
	for _, k := range c.trunks.ordered {
		c.own(k.ID, k.Owner)
	}
}
