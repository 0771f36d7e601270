package openstacksim

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// serverRequest is the body of POST /servers.
type serverRequest struct {
	Name           string            `json:"name"`
	Image          string            `json:"imageRef"`
	Flavor         string            `json:"flavorRef"`
	Networks       json.RawMessage   `json:"networks"`
	Metadata       map[string]string `json:"metadata"`
	Tags           []string          `json:"tags"`
	Description    *string           `json:"description"`
	UserData       string            `json:"user_data"`
	Zone           string            `json:"availability_zone"`
	ConfigDrive    any               `json:"config_drive"`
	KeyName        string            `json:"key_name"`
	SecurityGroups []struct {
		Name string `json:"name"`
	} `json:"security_groups"`
	Disks []diskRequest `json:"block_device_mapping_v2"`
	hints struct {
		Group string `json:"group"`
	}
	raw map[string]json.RawMessage
}

// createServer implements POST /servers.
func createServer(c *Cloud, t *turn) (reply, error) {
	r, err := readServerRequest(t)
	if err != nil {
		return reply{}, err
	}
	s := &server{
		record: c.newRecord(t.project(), r.Name), UserID: t.scope.UserID, Metadata: orEmpty(r.Metadata), Tags: r.Tags, userData: r.UserData,
		KeyName: r.KeyName, ConfigDrive: r.ConfigDrive == true || r.ConfigDrive == "True" || r.ConfigDrive == "true",
	}
	slices.Sort(s.Tags)
	r.describe(t, s)
	s.Owner = ownerOfServer(s)
	if err := c.resolve(t, r, s); err != nil {
		return reply{}, err
	}
	if err := c.checkServerQuota(s); err != nil {
		return reply{}, err
	}
	if err := c.attachRequested(t, r, s); err != nil {
		return reply{}, err
	}
	c.plan(t, s)
	c.putServer(s)
	c.saveUserData(s)
	c.launch(s)
	c.touch(s)
	t.Changed(s.ID)
	view := object{
		"id": s.ID, "links": novaLinks(t, "servers", s.ID), "OS-DCF:diskConfig": "MANUAL", "adminPass": newAudit()[:12],
		"security_groups": c.groupNamesAsked(r),
	}
	answer := reply{status: http.StatusAccepted, body: object{"server": view}}
	answer.set("Location", t.base()+"/compute/v2.1/servers/"+s.ID)
	return answer, nil
}

func (r *serverRequest) describe(t *turn, s *server) {
	s.Description, s.Described = r.Name, true
	if t.version >= serverDescription {
		s.Description, s.Described = "", r.Description != nil
		if r.Description != nil {
			s.Description = *r.Description
		}
	}
}

// ownerOfServer reads a server's marks, where they stand in clear before where they are hashed.
func ownerOfServer(s *server) owner {
	o := ownerOfMetadata(s.Metadata)
	for _, tag := range s.Tags {
		marked := ownerOfTag(tag)
		if o.Cluster == "" {
			o.Cluster = marked.Cluster
		}
		if o.Machine == "" {
			o.Machine = marked.Machine
		}
	}
	return o
}

// groupNamesAsked are the security groups that the answer to a creation shows: those that were
// asked for.
func (c *Cloud) groupNamesAsked(r *serverRequest) []object {
	var names []object
	for _, g := range r.SecurityGroups {
		names = append(names, object{"name": g.Name})
	}
	if len(names) == 0 {
		names = []object{{"name": defaultGroup}}
	}
	return names
}

// resolve finds what the request names, in the order in which Nova does.
func (c *Cloud) resolve(t *turn, r *serverRequest, s *server) error {
	interfaces, err := readNetworks(t, r)
	if err != nil {
		return err
	}
	s.Interfaces = interfaces
	f := c.flavors.byID[r.Flavor]
	if f == nil {
		return refuse(http.StatusBadRequest, "Flavor %s could not be found.", r.Flavor)
	}
	s.Flavor = serverFlavor{ID: f.ID, Name: f.Name, VCPUs: f.VCPUs, RAM: f.RAM, Disk: f.Disk, Specs: f.Specs}
	if err := c.resolveImage(r, s); err != nil {
		return err
	}
	s.Zone = r.Zone
	if r.Zone == "" {
		s.Zone = c.options.World.Zones[0]
	}
	if !slices.Contains(c.options.World.Zones, s.Zone) {
		return refuse(http.StatusBadRequest, "The requested availability zone is not available")
	}
	if r.KeyName != "" && !slices.Contains(c.options.World.KeyPairs, r.KeyName) {
		return refuse(http.StatusBadRequest, "Invalid key_name provided.")
	}
	if err := c.resolveGroups(t, r, s); err != nil {
		return err
	}
	if err := c.checkInterfaces(t, s); err != nil {
		return err
	}
	return c.joinGroup(t, r, s)
}

func (c *Cloud) resolveImage(r *serverRequest, s *server) error {
	s.Image = r.Image
	if r.Image == "" {
		return nil
	}
	i := c.images.byID[r.Image]
	if i == nil {
		return refuse(http.StatusBadRequest, "Can not find requested image")
	}
	if i.Status != "active" {
		return refuse(http.StatusBadRequest, "Image %s is not active.", i.ID)
	}
	if i.MinRAM > s.Flavor.RAM {
		return refuse(http.StatusBadRequest, "Flavor's memory is too small for requested image.")
	}
	const gib = 1 << 30
	if bootsFromVolume(r) {
		return nil
	}
	if s.Flavor.Disk == 0 {
		return refuse(http.StatusForbidden, "Only volume-backed servers are allowed for flavors with zero disk.")
	}
	if i.MinDisk > s.Flavor.Disk {
		return refuse(http.StatusBadRequest, "Flavor's disk is smaller than the minimum size specified in image metadata. "+
			"Flavor disk is %d bytes, minimum size is %d bytes.", s.Flavor.Disk*gib, i.MinDisk*gib)
	}
	return nil
}

// resolveGroups finds the security groups of the ports that Nova makes.
func (c *Cloud) resolveGroups(t *turn, r *serverRequest, s *server) error {
	s.Groups = []string{c.defaultGroup(t.project()).ID}
	for n, wanted := range r.SecurityGroups {
		g := c.groupNamed(t.project(), wanted.Name)
		if g == nil {
			return refuse(http.StatusBadRequest, "Unable to find security_group with name or id '%s'", wanted.Name)
		}
		s.Groups = append(s.Groups[:n:n], g.ID)
	}
	return nil
}

// joinGroup puts the server into the server group of the request's hint.
func (c *Cloud) joinGroup(t *turn, r *serverRequest, s *server) error {
	if r.hints.Group == "" {
		return nil
	}
	g := c.serverGroups.byID[r.hints.Group]
	if g == nil || g.Project != t.project() {
		return refuse(http.StatusBadRequest, "Instance group %s could not be found.", r.hints.Group)
	}
	if c.exceeds(t.project(), "server_group_members", int64(len(c.serversOf(g.ID))), 1) {
		return refuse(http.StatusForbidden, "Quota exceeded, too many servers in group")
	}
	s.Group = g.ID
	return nil
}

// serverAttributes are those of a server in POST /servers, with the microversion from which on
// there are.
var serverAttributes = map[string]microversion{
	"name": 1, "imageRef": 1, "flavorRef": 1, "networks": 1, "metadata": 1, "user_data": 1, "availability_zone": 1, "config_drive": 1, "key_name": 1,
	"security_groups": 1, "block_device_mapping_v2": 1, "adminPass": 1, "min_count": 1, "max_count": 1, "OS-DCF:diskConfig": 1,
	"accessIPv4": 1, "accessIPv6": 1, "return_reservation_id": 1, "block_device_mapping": 1,
	"description": serverDescription, "tags": tagsAtCreation, "trusted_image_certificates": trustedCertificates, "host": 74, "hypervisor_hostname": 74,
	"hostname": hostnameShown,
}

func readServerRequest(t *turn) (*serverRequest, error) {
	var body struct {
		Server json.RawMessage `json:"server"`
		Hints  json.RawMessage `json:"os:scheduler_hints"`
		Older  json.RawMessage `json:"OS-SCH-HNT:scheduler_hints"`
	}
	if err := json.Unmarshal(t.body, &body); err != nil {
		return nil, refuse(http.StatusBadRequest, "Malformed request body")
	}
	if len(body.Server) == 0 {
		return nil, refuse(http.StatusBadRequest, "'server' is a required property")
	}
	for _, name := range keysInOrder(t.body) {
		if !slices.Contains([]string{"server", "os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"}, name) {
			return nil, refuse(http.StatusBadRequest, "Additional properties are not allowed ('%s' was unexpected)", name)
		}
	}
	r := &serverRequest{}
	if err := json.Unmarshal(body.Server, &r.raw); err != nil {
		return nil, refuse(http.StatusBadRequest, "Invalid input for field/attribute server. Value: %s. %s is not of type 'object'", body.Server, body.Server)
	}
	if err := checkServer(t, r, body.Server); err != nil {
		return nil, err
	}
	if err := checkDiskSizes(r.raw["block_device_mapping_v2"]); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body.Server, r); err != nil {
		return nil, refuse(http.StatusBadRequest, "Invalid input for field/attribute server. Value: %s. %s", pythonic(body.Server), err)
	}
	for _, hints := range []json.RawMessage{body.Older, body.Hints} {
		_ = json.Unmarshal(hints, &r.hints) // absent, or of a form that no hint has
	}
	if r.hints.Group != "" && !isUUID(r.hints.Group) {
		return nil, refuse(http.StatusBadRequest, "Invalid input for field/attribute group. Value: %s. '%s' is not a 'uuid'", r.hints.Group, r.hints.Group)
	}
	return r, nil
}

// checkServerQuota returns Nova's words when the server is one too many.
func (c *Cloud) checkServerQuota(s *server) error {
	used := c.computeUse(s.Project)
	wanted := map[string]int64{"instances": 1, "cores": int64(s.Flavor.VCPUs), "ram": int64(s.Flavor.RAM)}
	var names, requested, already, limits []string
	for _, kind := range []string{"cores", "instances", "ram"} {
		if !c.exceeds(s.Project, computeQuotas[kind], used[kind], wanted[kind]) {
			continue
		}
		names = append(names, kind)
		requested = append(requested, fmt.Sprint(wanted[kind]))
		already = append(already, fmt.Sprint(used[kind]))
		limits = append(limits, fmt.Sprint(c.computeLimit(s.Project, kind)))
	}
	if len(names) == 0 {
		return nil
	}
	return refuse(http.StatusForbidden, "Quota exceeded for %s: Requested %s, but already used %s of %s %s",
		strings.Join(names, ", "), strings.Join(requested, ", "), strings.Join(already, ", "), strings.Join(limits, ", "), strings.Join(names, ", "))
}

func cloneMap(m map[string]string) map[string]string { return maps.Clone(orEmpty(m)) }
