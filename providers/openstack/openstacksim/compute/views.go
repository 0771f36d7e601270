package compute

import (
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/network"
)

// launchTime is how Nova writes when a server was launched, and when it went.
const launchTime = "2006-01-02T15:04:05.000000"

func (s *Server) brief(call *api.Call) api.Object {
	return api.Object{"id": s.ID, "name": s.Name, "links": novaLinks(call, "servers", s.ID)}
}

// serverView is the server in detail; alone says that nothing else is asked for.
func serverView(nova *Nova, call *api.Call, s *Server, alone bool) api.Object {
	view := api.Object{
		"id": s.ID, "name": s.Name, "status": s.status(), "tenant_id": s.Project, "user_id": s.UserID, "metadata": api.OrEmpty(s.Metadata),
		"hostId": s.hostID(), "image": s.imageView(call), "flavor": s.flavorView(call), "created": s.Created.Format(api.TimeForm), "updated": s.Updated.Format(api.TimeForm),
		"addresses": addresses(nova, s), "accessIPv4": "", "accessIPv6": "", "links": novaLinks(call, "servers", s.ID), "OS-DCF:diskConfig": "MANUAL",
		"OS-EXT-AZ:availability_zone": "", "config_drive": "", "key_name": api.TextOrNil(s.KeyName),
		"OS-SRV-USG:launched_at": api.TimeOrNil(s.Launched, launchTime), "OS-SRV-USG:terminated_at": api.TimeOrNil(s.Terminated, launchTime),
		"OS-EXT-STS:task_state": api.TextOrNil(s.TaskState), "OS-EXT-STS:vm_state": s.VMState, "OS-EXT-STS:power_state": s.Power,
		"os-extended-volumes:volumes_attached": s.disksView(call),
	}
	if s.Bound && s.VMState != VMShelved {
		view["OS-EXT-AZ:availability_zone"] = s.Zone
	}
	if s.ConfigDrive {
		view["config_drive"] = "True"
	}
	if s.VMState == VMActive || s.VMState == VMBuilding {
		view["progress"] = 0
	}
	if groups := groupsOf(nova, s); len(groups) > 0 && s.Bound && s.VMState != VMBuilding && !s.Gone() {
		view["security_groups"] = groups
	}
	if s.Fault != nil && s.VMState == VMError && (alone || !s.Hostless) {
		view["fault"] = api.Object{"code": s.Fault.Code, "message": s.Fault.Message, "created": s.Fault.Created.Format(api.TimeForm)}
	}
	viewByVersion(call, s, view, alone)
	return view
}

// viewByVersion adds what servers show only from some microversion on.
func viewByVersion(call *api.Call, s *Server, view api.Object, alone bool) {
	if call.Version >= serverLocked {
		view["locked"] = s.Locked
	}
	if call.Version >= lockedReason {
		view["locked_reason"] = nil
	}
	if call.Version >= serverDescription {
		view["description"] = nil
		if s.Described {
			view["description"] = s.Description
		}
	}
	if call.Version >= userDataShown && call.Admin() {
		view["OS-EXT-SRV-ATTR:user_data"] = api.TextOrNil(s.UserData)
	}
	if call.Version >= serverTags {
		view["tags"] = append([]string{}, s.Tags...)
	}
	if call.Version >= trustedCertificates {
		view["trusted_image_certificates"] = nil
	}
	if call.Version >= serverGroupsShown && alone {
		view["server_groups"] = []string{}
		if s.Group != "" {
			view["server_groups"] = []string{s.Group}
		}
	}
	if call.Version >= hostnameShown {
		view["OS-EXT-SRV-ATTR:hostname"] = s.Name
	}
}

func (s *Server) imageView(call *api.Call) any {
	if s.Image == "" {
		return ""
	}
	return api.Object{"id": s.Image, "links": []api.Object{{"rel": "bookmark", "href": call.Base() + "/compute/images/" + s.Image}}}
}

func (s *Server) flavorView(call *api.Call) api.Object {
	f := s.Flavor
	if call.Version < flavorEmbedded {
		return api.Object{"id": f.ID, "links": []api.Object{{"rel": "bookmark", "href": call.Base() + "/compute/flavors/" + f.ID}}}
	}
	return api.Object{
		"vcpus": f.VCPUs, "ram": f.RAM, "disk": f.Disk, "ephemeral": f.Ephemeral, "swap": 0, "original_name": f.Name, "extra_specs": api.OrEmpty(f.Specs),
	}
}

func (s *Server) disksView(call *api.Call) []api.Object {
	views := []api.Object{}
	for _, a := range s.Disks {
		view := api.Object{"id": a.Volume}
		if call.Version >= attachmentsSayMore {
			view["delete_on_termination"] = a.Ends
		}
		views = append(views, view)
	}
	return views
}

// addresses are those of the server's ports and their floating IPs, by network.
func addresses(nova *Nova, s *Server) map[string][]api.Object {
	found := map[string][]api.Object{}
	if s.VMState == VMBuilding || s.Gone() {
		return found
	}
	for _, id := range s.PortIDs() {
		p := nova.neutron.Ports.ByID[id]
		if p == nil || p.DeviceID != s.ID {
			continue
		}
		name := nova.neutron.Networks.ByID[p.Network].Name
		for _, ip := range p.FixedIPs {
			found[name] = append(found[name], addressView(ip.Address, "fixed", p.MAC))
			for _, f := range nova.neutron.FloatingIPs.With(network.ByPort, p.ID) {
				if f.FixedIP == ip.Address {
					found[name] = append(found[name], addressView(f.Address, "floating", p.MAC))
				}
			}
		}
	}
	return found
}

func addressView(address, kind, mac string) api.Object {
	return api.Object{"version": 4, "addr": address, "OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": mac}
}

// groupsOf are the security groups of the server's ports, by name.
func groupsOf(nova *Nova, s *Server) []api.Object {
	var views []api.Object
	seen := map[string]bool{}
	for _, id := range s.PortIDs() {
		p := nova.neutron.Ports.ByID[id]
		if p == nil {
			continue
		}
		for _, group := range p.Groups {
			if g := nova.neutron.SecurityGroups.ByID[group]; g != nil && !seen[g.ID] {
				seen[g.ID] = true
				views = append(views, api.Object{"name": g.Name})
			}
		}
	}
	return views
}
