package openstacksim

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/compute"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/image"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/network"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/volume"
)

// seed makes what the world has. The order is that of the numbers that everything gets.
func (c *Cloud) seed(w World) error {
	for _, p := range w.Projects {
		c.keystone.AddProject(p.Name, p.ID, p.Admin)
	}
	for _, f := range w.Flavors {
		c.nova.Flavors.Put(&compute.Flavor{
			Record: c.store.GivenRecord("flavor", f.ID, f.Name, ""), VCPUs: f.VCPUs, RAM: f.RAM, Disk: f.Disk, Ephemeral: f.Ephemeral, Specs: api.OrEmpty(f.ExtraSpecs),
		})
	}
	for _, i := range w.Images {
		record := c.store.GivenRecord("image", i.ID, i.Name, c.keystone.ProjectID("admin"))
		record.Tags = i.Tags
		c.glance.Images.Put(&image.Image{
			Record: record, Status: cmp.Or(i.Status, "active"), MinDisk: i.MinDisk, MinRAM: i.MinRAM, Properties: i.Properties,
		})
	}
	for _, n := range w.Networks {
		if err := c.seedNetwork(n); err != nil {
			return err
		}
	}
	c.neutron.AddRouters(c.keystone.ProjectName)
	for _, g := range w.SecurityGroups {
		c.neutron.SecurityGroups.Put(&network.SecurityGroup{
			Record: c.store.GivenRecord("security group", g.ID, g.Name, c.keystone.ProjectID(g.Project)),
		})
	}
	for _, g := range w.ServerGroups {
		c.nova.ServerGroups.Put(&compute.ServerGroup{
			Record: c.store.GivenRecord("server group", g.ID, g.Name, c.keystone.ProjectID(g.Project)), Policy: g.Policy,
		})
	}
	for _, name := range w.VolumeTypes {
		c.cinder.Types = append(c.cinder.Types, volume.Type{ID: state.NamedID("volume type", name), Name: name})
	}
	return nil
}

func (c *Cloud) seedNetwork(w Network) error {
	n := &network.Network{
		Record: c.store.GivenRecord("network", w.ID, w.Name, c.keystone.ProjectID(w.Project)), External: w.External, Shared: w.Shared,
	}
	c.neutron.Networks.Put(n)
	for _, s := range w.Subnets {
		prefix, err := netip.ParsePrefix(s.CIDR)
		if err != nil {
			return fmt.Errorf("subnet %s of network %s: %w", s.Name, w.Name, err)
		}
		c.neutron.Subnets.Put(network.NewSubnet(c.store.GivenRecord("subnet", s.ID, s.Name, n.Project), n.ID, prefix))
	}
	return nil
}
