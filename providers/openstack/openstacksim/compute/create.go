package compute

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/network"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
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
func createServer(nova *Nova, call *api.Call) (api.Reply, error) {
	r, err := readServerRequest(call)
	if err != nil {
		return api.Reply{}, err
	}
	s := &Server{
		Record: nova.store.NewRecord(call.Project(), r.Name), UserID: call.Caller.UserID, Metadata: api.OrEmpty(r.Metadata), Tags: r.Tags, UserData: r.UserData,
		KeyName: r.KeyName, ConfigDrive: r.ConfigDrive == true || r.ConfigDrive == "True" || r.ConfigDrive == "true",
	}
	slices.Sort(s.Tags)
	r.describe(call, s)
	s.Owner = OwnerOf(s)
	if err := resolve(nova, call, r, s); err != nil {
		return api.Reply{}, err
	}
	if err := checkServerQuota(nova, s); err != nil {
		return api.Reply{}, err
	}
	if err := attachRequested(nova, call, r, s); err != nil {
		return api.Reply{}, err
	}
	plan(nova, call, s)
	nova.Servers.put(s)
	nova.Servers.saveUserData(s)
	nova.launch(s)
	nova.Servers.touch(s)
	call.Changed(s.ID)
	view := api.Object{
		"id": s.ID, "links": novaLinks(call, "servers", s.ID), "OS-DCF:diskConfig": "MANUAL", "adminPass": newPassword(),
		"security_groups": groupNamesAsked(r),
	}
	answer := api.Reply{Status: http.StatusAccepted, Body: api.Object{"server": view}}
	answer.Set("Location", call.Base()+"/compute/v2.1/servers/"+s.ID)
	return answer, nil
}

func (r *serverRequest) describe(call *api.Call, s *Server) {
	s.Description, s.Described = r.Name, true
	if call.Version >= serverDescription {
		s.Description, s.Described = "", r.Description != nil
		if r.Description != nil {
			s.Description = *r.Description
		}
	}
}

// OwnerOf reads a server's marks, where they stand in clear before where they are hashed.
func OwnerOf(s *Server) state.Owner {
	o := state.OwnerOfMetadata(s.Metadata)
	for _, tag := range s.Tags {
		marked := state.OwnerOfTag(tag)
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
func groupNamesAsked(r *serverRequest) []api.Object {
	var names []api.Object
	for _, g := range r.SecurityGroups {
		names = append(names, api.Object{"name": g.Name})
	}
	if len(names) == 0 {
		names = []api.Object{{"name": network.DefaultGroupName}}
	}
	return names
}

// resolve finds what the request names, in the order in which Nova does.
func resolve(nova *Nova, call *api.Call, r *serverRequest, s *Server) error {
	interfaces, err := readNetworks(call, r)
	if err != nil {
		return err
	}
	s.Interfaces = interfaces
	f := nova.Flavors.ByID[r.Flavor]
	if f == nil {
		return api.Refuse(http.StatusBadRequest, "Flavor %s could not be found.", r.Flavor)
	}
	s.Flavor = FlavorOf(f)
	if err := resolveImage(nova, r, s); err != nil {
		return err
	}
	s.Zone = r.Zone
	if r.Zone == "" {
		s.Zone = nova.options.Zones[0]
	}
	if !slices.Contains(nova.options.Zones, s.Zone) {
		return api.Refuse(http.StatusBadRequest, "The requested availability zone is not available")
	}
	if r.KeyName != "" && !slices.Contains(nova.options.KeyPairs, r.KeyName) {
		return api.Refuse(http.StatusBadRequest, "Invalid key_name provided.")
	}
	if err := resolveGroups(nova, call, r, s); err != nil {
		return err
	}
	if err := checkInterfaces(nova, call, s); err != nil {
		return err
	}
	return joinGroup(nova, call, r, s)
}

func resolveImage(nova *Nova, r *serverRequest, s *Server) error {
	s.Image = r.Image
	if r.Image == "" {
		return nil
	}
	i := nova.glance.Images.ByID[r.Image]
	if i == nil {
		return api.Refuse(http.StatusBadRequest, "Can not find requested image")
	}
	if i.Status != "active" {
		return api.Refuse(http.StatusBadRequest, "Image %s is not active.", i.ID)
	}
	if i.MinRAM > s.Flavor.RAM {
		return api.Refuse(http.StatusBadRequest, "Flavor's memory is too small for requested image.")
	}
	const gib = 1 << 30
	if bootsFromVolume(r) {
		return nil
	}
	if s.Flavor.Disk == 0 {
		return api.Refuse(http.StatusForbidden, "Only volume-backed servers are allowed for flavors with zero disk.")
	}
	if i.MinDisk > s.Flavor.Disk {
		return api.Refuse(http.StatusBadRequest, "Flavor's disk is smaller than the minimum size specified in image metadata. "+
			"Flavor disk is %d bytes, minimum size is %d bytes.", s.Flavor.Disk*gib, i.MinDisk*gib)
	}
	return nil
}

// resolveGroups finds the security groups of the ports that Nova makes.
func resolveGroups(nova *Nova, call *api.Call, r *serverRequest, s *Server) error {
	s.Groups = []string{nova.neutron.DefaultGroup(call.Project()).ID}
	for n, wanted := range r.SecurityGroups {
		g := nova.neutron.GroupNamed(call.Project(), wanted.Name)
		if g == nil {
			return api.Refuse(http.StatusBadRequest, "Unable to find security_group with name or id '%s'", wanted.Name)
		}
		s.Groups = append(s.Groups[:n:n], g.ID)
	}
	return nil
}

// joinGroup puts the server into the server group of the request's hint.
func joinGroup(nova *Nova, call *api.Call, r *serverRequest, s *Server) error {
	if r.hints.Group == "" {
		return nil
	}
	g := nova.ServerGroups.ByID[r.hints.Group]
	if g == nil || g.Project != call.Project() {
		return api.Refuse(http.StatusBadRequest, "Instance group %s could not be found.", r.hints.Group)
	}
	if nova.store.Quotas.Exceeds(call.Project(), "server_group_members", int64(len(nova.Servers.in(g.ID))), 1) {
		return api.Refuse(http.StatusForbidden, "Quota exceeded, too many servers in group")
	}
	s.Group = g.ID
	return nil
}

// serverAttributes are those of a server in POST /servers, with the microversion from which on
// there are.
var serverAttributes = map[string]api.Microversion{
	"name": 1, "imageRef": 1, "flavorRef": 1, "networks": 1, "metadata": 1, "user_data": 1, "availability_zone": 1, "config_drive": 1, "key_name": 1,
	"security_groups": 1, "block_device_mapping_v2": 1, "adminPass": 1, "min_count": 1, "max_count": 1, "OS-DCF:diskConfig": 1,
	"accessIPv4": 1, "accessIPv6": 1, "return_reservation_id": 1, "block_device_mapping": 1,
	"description": serverDescription, "tags": tagsAtCreation, "trusted_image_certificates": trustedCertificates, "host": 74, "hypervisor_hostname": 74,
	"hostname": hostnameShown,
}

func readServerRequest(call *api.Call) (*serverRequest, error) {
	var body struct {
		Server json.RawMessage `json:"server"`
		Hints  json.RawMessage `json:"os:scheduler_hints"`
		Older  json.RawMessage `json:"OS-SCH-HNT:scheduler_hints"`
	}
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return nil, api.Refuse(http.StatusBadRequest, "Malformed request body")
	}
	if len(body.Server) == 0 {
		return nil, api.Refuse(http.StatusBadRequest, "'server' is a required property")
	}
	for _, name := range api.KeysInOrder(call.Body) {
		if !slices.Contains([]string{"server", "os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"}, name) {
			return nil, api.Refuse(http.StatusBadRequest, "Additional properties are not allowed ('%s' was unexpected)", name)
		}
	}
	r := &serverRequest{}
	if err := json.Unmarshal(body.Server, &r.raw); err != nil {
		return nil, api.Refuse(http.StatusBadRequest, "Invalid input for field/attribute server. Value: %s. %s is not of type 'object'", body.Server, body.Server)
	}
	if err := checkServer(call, r, body.Server); err != nil {
		return nil, err
	}
	if err := checkDiskSizes(r.raw["block_device_mapping_v2"]); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body.Server, r); err != nil {
		return nil, api.Refuse(http.StatusBadRequest, "Invalid input for field/attribute server. Value: %s. %s", api.Pythonic(body.Server), err)
	}
	for _, hints := range []json.RawMessage{body.Older, body.Hints} {
		_ = json.Unmarshal(hints, &r.hints) // absent, or of a form that no hint has
	}
	if r.hints.Group != "" && !state.IsUUID(r.hints.Group) {
		return nil, api.Refuse(http.StatusBadRequest, "Invalid input for field/attribute group. Value: %s. '%s' is not a 'uuid'", r.hints.Group, r.hints.Group)
	}
	return r, nil
}

// newPassword returns what Nova says is the administrator's password of a server.
func newPassword() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
