package openstacksim

import (
	"maps"
)

// quotaKinds are what the hooks can limit: the kinds of resources, and what servers take of hosts.
var quotaKinds = []string{kindVM, kindPort, kindFloatingIP, kindVolume, "cores", "ram"}

// computeQuotas are the quotas of Nova, by what the cloud calls their kinds.
var computeQuotas = map[string]string{"instances": kindVM, "cores": "cores", "ram": "ram", "server_group_members": "server_group_members"}

// volumeQuotas are the same of Cinder.
var volumeQuotas = map[string]string{"volumes": kindVolume, "gigabytes": "gigabytes"}

// neutronQuotas are the quotas of Neutron, with what it allows where nobody says otherwise.
var neutronQuotas = map[string]int64{
	"network": 100, "subnet": 100, kindPort: unlimited, "router": 10, kindFloatingIP: unlimited, "security_group": 10, "security_group_rule": 100,
	kindTrunk: unlimited, "subnetpool": unlimited, "rbac_policy": 10,
}

const unlimited = -1

// limit is how many of a kind a project may have: what an administrator has set, else what the
// hooks have set for all, else any number. A negative one is none.
func (c *Cloud) limit(project, kind string) int64 {
	if limit, set := c.projectQuotas[project][kind]; set {
		return limit
	}
	if limit, set := c.quota[kind]; set {
		return limit
	}
	return unlimited
}

// exceeds says whether more than there are of a kind are too many. The limits of the hooks do not
// count what the world had from the beginning.
func (c *Cloud) exceeds(project, kind string, used, more int64) bool {
	limit := c.limit(project, kind)
	if _, set := c.projectQuotas[project][kind]; !set && kind == kindPort {
		used -= c.portsGiven(project)
	}
	return limit >= 0 && used+more > limit
}

// portsGiven counts the ports of a project that the world had from the beginning: those of its
// routers.
func (c *Cloud) portsGiven(project string) int64 {
	given := int64(0)
	for _, p := range c.ports.with(byDeviceOwner, routerInterface) {
		if p.Given && p.Project == project {
			given++
		}
	}
	return given
}

// setQuotas sets what one project may have.
func (c *Cloud) setQuotas(project string, limits map[string]int64) {
	all := maps.Clone(c.projectQuotas[project])
	if all == nil {
		all = map[string]int64{}
	}
	maps.Copy(all, limits)
	c.projectQuotas[project] = all
	c.save(func(e *entry) { e.ProjectQuotas = c.projectQuotas })
}
