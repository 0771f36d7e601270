package openstacksim

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/ownership"
)

// owner is whose a resource is, by the uids of its cluster and machine; empty for what nobody has
// marked.
type owner struct {
	Cluster string `json:"cluster,omitempty"`
	Machine string `json:"machine,omitempty"`
}

// subjects are the clusters and machines that a call is about.
type subjects struct {
	clusters, machines []string
}

func (s *subjects) add(o owner) {
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

// ownerOfMetadata reads the marks of servers and volumes.
func ownerOfMetadata(metadata map[string]string) owner {
	return owner{Cluster: metadata[ownership.Cluster], Machine: metadata[ownership.Machine]}
}

// ownerOfTag reads one tag of a server. A hash stays what it is.
func ownerOfTag(tag string) owner {
	if uid, ok := strings.CutPrefix(tag, ownership.Cluster+"="); ok {
		return owner{Cluster: uid}
	}
	if uid, ok := strings.CutPrefix(tag, ownership.Machine+"="); ok {
		return owner{Machine: uid}
	}
	switch {
	case strings.HasPrefix(tag, ownership.Cluster+"#"):
		return owner{Cluster: tag}
	case strings.HasPrefix(tag, ownership.Machine+"#"):
		return owner{Machine: tag}
	}
	return owner{}
}

// describedMachine is what descriptions say of a machine, and describedCluster what they say of a
// cluster.
var (
	describedMachine = regexp.MustCompile(`^machine (\S+) of `)
	describedCluster = regexp.MustCompile(regexp.QuoteMeta(ownership.ClusterDescription("")) + `(\S+)$`)
)

// ownerOfDescription reads the description of a server, a port or a floating IP.
func ownerOfDescription(description string) owner {
	var found owner
	if m := describedCluster.FindStringSubmatch(description); m != nil {
		found.Cluster = m[1]
	}
	if m := describedMachine.FindStringSubmatch(description); m != nil && found.Cluster != "" {
		found.Machine = m[1]
	}
	return found
}

// ownerOfText reads the name and the description of what Neutron holds. A name says more than it
// may only where the description says that it is ours.
func ownerOfText(name, description string) owner {
	found := ownerOfDescription(description)
	if found.Cluster == "" || found.Machine != "" {
		return found
	}
	if o, ours := ownership.FromPort(found.Cluster, name, ownership.ClusterDescription(found.Cluster)); ours {
		found.Machine = o.UID
	}
	return found
}

// subjectsOfQuery reads what a list asks for.
func (c *Cloud) subjectsOfQuery(query url.Values) subjects {
	var found subjects
	for _, name := range []string{"tags", "tags-any"} {
		for _, value := range query[name] {
			for tag := range strings.SplitSeq(value, ",") {
				found.add(ownerOfTag(tag))
			}
		}
	}
	for _, text := range query["description"] {
		found.add(ownerOfDescription(text))
	}
	for _, name := range query["name"] {
		found.add(ownerOfPortName(name))
		if one, whole := literal(name); whole {
			found.add(c.nameOwners[one])
		}
	}
	for _, mac := range query["mac_address"] {
		found.add(c.nameOwners[mac])
	}
	for _, metadata := range query["metadata"] {
		found.add(ownerOfMetadata(metadataOf(metadata)))
	}
	for _, name := range []string{"id", "device_id", "port_id"} {
		for _, id := range query[name] {
			found.add(c.owners[id])
		}
	}
	return found
}

// ownerOfPortName reads the name of a port, of which only the driver's has this form.
func ownerOfPortName(name string) owner {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[2] == "" {
		return owner{}
	}
	return owner{Machine: parts[2]}
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
func (c *Cloud) subjectsOfBody(body []byte) subjects {
	var found subjects
	var things map[string]json.RawMessage
	if json.Unmarshal(body, &things) != nil {
		return found
	}
	for _, raw := range things {
		var m marked
		_ = json.Unmarshal(raw, &m) // what has another form has no marks
		found.add(ownerOfMetadata(m.Metadata))
		for _, tag := range m.Tags {
			found.add(ownerOfTag(tag))
		}
		found.add(ownerOfText(m.Name, m.Description))
		for _, id := range []string{m.PortID, m.ServerID, m.VolumeID} {
			found.add(c.owners[id])
		}
	}
	return found
}
