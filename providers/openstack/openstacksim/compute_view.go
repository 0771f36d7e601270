package openstacksim

import (
	"time"
)

// The ways in which Nova writes times.
const (
	novaTime   = "2006-01-02T15:04:05Z"
	launchTime = "2006-01-02T15:04:05.000000"
)

// timeOrNil is nil for the zero time.
func timeOrNil(t time.Time, form string) any {
	if t.IsZero() {
		return nil
	}
	return t.Format(form)
}

// textOrNil is nil for the empty text.
func textOrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (s *server) brief(t *turn) object {
	return object{"id": s.ID, "name": s.Name, "links": novaLinks(t, "servers", s.ID)}
}

// view is the server in detail; alone says that nothing else is asked for.
func (c *Cloud) view(t *turn, s *server, alone bool) object {
	view := object{
		"id": s.ID, "name": s.Name, "status": s.status(), "tenant_id": s.Project, "user_id": s.UserID, "metadata": orEmpty(s.Metadata),
		"hostId": s.hostID(), "image": s.imageView(t), "flavor": s.flavorView(t), "created": s.Created.Format(novaTime), "updated": s.Updated.Format(novaTime),
		"addresses": c.addresses(s), "accessIPv4": "", "accessIPv6": "", "links": novaLinks(t, "servers", s.ID), "OS-DCF:diskConfig": "MANUAL",
		"OS-EXT-AZ:availability_zone": "", "config_drive": "", "key_name": textOrNil(s.KeyName),
		"OS-SRV-USG:launched_at": timeOrNil(s.Launched, launchTime), "OS-SRV-USG:terminated_at": timeOrNil(s.Terminated, launchTime),
		"OS-EXT-STS:task_state": textOrNil(s.TaskState), "OS-EXT-STS:vm_state": s.VMState, "OS-EXT-STS:power_state": s.Power,
		"os-extended-volumes:volumes_attached": s.disksView(t),
	}
	if s.Bound && s.VMState != vmShelved {
		view["OS-EXT-AZ:availability_zone"] = s.Zone
	}
	if s.ConfigDrive {
		view["config_drive"] = "True"
	}
	if s.VMState == vmActive || s.VMState == vmBuilding {
		view["progress"] = 0
	}
	if groups := c.groupsOf(s); len(groups) > 0 && s.Bound && s.VMState != vmBuilding && !s.gone() {
		view["security_groups"] = groups
	}
	if s.Fault != nil && s.VMState == vmError && (alone || !s.Hostless) {
		view["fault"] = object{"code": s.Fault.Code, "message": s.Fault.Message, "created": s.Fault.Created.Format(novaTime)}
	}
	c.viewByVersion(t, s, view, alone)
	return view
}

// viewByVersion adds what servers show only from some microversion on.
func (c *Cloud) viewByVersion(t *turn, s *server, view object, alone bool) {
	if t.version >= serverLocked {
		view["locked"] = s.Locked
	}
	if t.version >= lockedReason {
		view["locked_reason"] = nil
	}
	if t.version >= serverDescription {
		view["description"] = nil
		if s.Described {
			view["description"] = s.Description
		}
	}
	if t.version >= userDataShown && t.admin() {
		view["OS-EXT-SRV-ATTR:user_data"] = textOrNil(s.userData)
	}
	if t.version >= serverTags {
		view["tags"] = append([]string{}, s.Tags...)
	}
	if t.version >= trustedCertificates {
		view["trusted_image_certificates"] = nil
	}
	if t.version >= serverGroupsShown && alone {
		view["server_groups"] = []string{}
		if s.Group != "" {
			view["server_groups"] = []string{s.Group}
		}
	}
	if t.version >= hostnameShown {
		view["OS-EXT-SRV-ATTR:hostname"] = s.Name
	}
}

func (s *server) imageView(t *turn) any {
	if s.Image == "" {
		return ""
	}
	return object{"id": s.Image, "links": []object{{"rel": "bookmark", "href": t.base() + "/compute/images/" + s.Image}}}
}

func (s *server) flavorView(t *turn) object {
	f := s.Flavor
	if t.version < flavorEmbedded {
		return object{"id": f.ID, "links": []object{{"rel": "bookmark", "href": t.base() + "/compute/flavors/" + f.ID}}}
	}
	return object{
		"vcpus": f.VCPUs, "ram": f.RAM, "disk": f.Disk, "ephemeral": 0, "swap": 0, "original_name": f.Name, "extra_specs": orEmpty(f.Specs),
	}
}

func (s *server) disksView(t *turn) []object {
	views := []object{}
	for _, a := range s.Disks {
		view := object{"id": a.Volume}
		if t.version >= attachmentsSayMore {
			view["delete_on_termination"] = a.Ends
		}
		views = append(views, view)
	}
	return views
}

// addresses are those of the server's ports and their floating IPs, by network.
func (c *Cloud) addresses(s *server) map[string][]object {
	found := map[string][]object{}
	if s.VMState == vmBuilding || s.gone() {
		return found
	}
	for _, id := range s.portIDs() {
		p := c.ports.byID[id]
		if p == nil || p.DeviceID != s.ID {
			continue
		}
		name := c.networks.byID[p.Network].Name
		for _, ip := range p.FixedIPs {
			found[name] = append(found[name], addressView(ip.Address, "fixed", p.MAC))
			for _, f := range c.floatingIPs.with(byPort, p.ID) {
				if f.FixedIP == ip.Address {
					found[name] = append(found[name], addressView(f.Address, "floating", p.MAC))
				}
			}
		}
	}
	return found
}

func addressView(address, kind, mac string) object {
	return object{"version": 4, "addr": address, "OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": mac}
}

// groupsOf are the security groups of the server's ports, by name.
func (c *Cloud) groupsOf(s *server) []object {
	var views []object
	seen := map[string]bool{}
	for _, id := range s.portIDs() {
		p := c.ports.byID[id]
		if p == nil {
			continue
		}
		for _, group := range p.Groups {
			if g := c.securityGroups.byID[group]; g != nil && !seen[g.ID] {
				seen[g.ID] = true
				views = append(views, object{"name": g.Name})
			}
		}
	}
	return views
}
