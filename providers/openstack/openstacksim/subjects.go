package openstacksim

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/compute"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/volume"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
)

// subjects are the clusters and machines that a call is about.
type subjects struct {
	clusters, machines []string
}

func (s *subjects) add(o state.Owner) {
	if o.Cluster != "" && !slices.Contains(s.clusters, o.Cluster) {
		s.clusters = append(s.clusters, o.Cluster)
	}
	if o.Machine != "" && !slices.Contains(s.machines, o.Machine) {
		s.machines = append(s.machines, o.Machine)
	}
}

// hashes are what stands in tags for uids that are too long for them.
func hashes(uid string) []string {
	return []string{ownership.ClusterTag(uid), ownership.MachineTag(uid)}
}

// subjectsOf returns whose call it is and which resource its path names.
func subjectsOf(owners *state.Owners, call *api.Call) (found subjects, resource string) {
	found = subjectsOfQuery(owners, call.Query)
	if len(call.Body) > 0 && call.Route.Service != api.Keystone {
		body := subjectsOfBody(owners, call.Body)
		found.clusters, found.machines = append(found.clusters, body.clusters...), append(found.machines, body.machines...)
	}
	if id := call.Path("id"); id != "" {
		found.add(owners.Of(id))
		return found, id
	}
	return found, ""
}

// subjectsOfQuery reads what a list asks for.
func subjectsOfQuery(owners *state.Owners, query url.Values) subjects {
	var found subjects
	for _, name := range []string{"tags", "tags-any"} {
		for _, value := range query[name] {
			for tag := range strings.SplitSeq(value, ",") {
				found.add(state.OwnerOfTag(tag))
			}
		}
	}
	for _, text := range query["description"] {
		found.add(state.OwnerOfDescription(text))
	}
	for _, name := range query["name"] {
		found.add(state.OwnerOfPortName(name))
		if one, whole := compute.Literal(name); whole {
			found.add(owners.OfName(one))
		}
	}
	for _, mac := range query["mac_address"] {
		found.add(owners.OfName(mac))
	}
	for _, metadata := range query["metadata"] {
		found.add(state.OwnerOfMetadata(volume.ReadMetadata(metadata)))
	}
	for _, name := range []string{"id", "device_id", "port_id"} {
		for _, id := range query[name] {
			found.add(owners.Of(id))
		}
	}
	return found
}

// marked are the parts of bodies in which marks stand.
type marked struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Metadata    map[string]string `json:"metadata"`
	Tags        []string          `json:"tags"`
	PortID      string            `json:"port_id"`
	ServerID    string            `json:"server_id"`
	VolumeID    string            `json:"volumeId"`
}

// subjectsOfBody reads what a body says of the one thing that it describes.
func subjectsOfBody(owners *state.Owners, body []byte) subjects {
	var found subjects
	var things map[string]json.RawMessage
	if json.Unmarshal(body, &things) != nil {
		return found
	}
	for _, raw := range things {
		var m marked
		_ = json.Unmarshal(raw, &m) // what has another form has no marks
		found.add(state.OwnerOfMetadata(m.Metadata))
		for _, tag := range m.Tags {
			found.add(state.OwnerOfTag(tag))
		}
		found.add(state.OwnerOfText(m.Name, m.Description))
		for _, id := range []string{m.PortID, m.ServerID, m.VolumeID} {
			found.add(owners.Of(id))
		}
	}
	return found
}
