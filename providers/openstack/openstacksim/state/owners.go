package state

import (
	"maps"
	"regexp"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/ownership"
)

// Owner is whose a resource is, by the uids of its cluster and machine; empty for what nobody has
// marked.
type Owner struct {
	Cluster string `json:"cluster,omitempty"`
	Machine string `json:"machine,omitempty"`
}

// Owners remember whose each resource was, also when it is gone, and whose a name or MAC address
// is.
type Owners struct {
	byID, byName map[string]Owner
}

// Set remembers whose a resource is. Nobody's is not remembered.
func (owners *Owners) Set(id string, o Owner) {
	if o != (Owner{}) {
		owners.byID[id] = o
	}
}

// SetName remembers whose a name or a MAC address is. Nobody's is not remembered.
func (owners *Owners) SetName(name string, o Owner) {
	if name != "" && o != (Owner{}) {
		owners.byName[name] = o
	}
}

// Of returns whose a resource is or was, by its id.
func (owners *Owners) Of(id string) Owner { return owners.byID[id] }

// OfName returns whose a name or a MAC address is.
func (owners *Owners) OfName(name string) Owner { return owners.byName[name] }

// Snapshot returns whose each resource is or was, by id. It is shared, not copied.
func (owners *Owners) Snapshot() map[string]Owner { return owners.byID }

// Restore takes in a Snapshot.
func (owners *Owners) Restore(snapshot map[string]Owner) { maps.Copy(owners.byID, snapshot) }

// OwnerOfMetadata reads the marks of servers and volumes.
func OwnerOfMetadata(metadata map[string]string) Owner {
	return Owner{Cluster: metadata[ownership.Cluster], Machine: metadata[ownership.Machine]}
}

// OwnerOfTag reads one tag of a server. A hash stays what it is.
func OwnerOfTag(tag string) Owner {
	if uid, ok := strings.CutPrefix(tag, ownership.Cluster+"="); ok {
		return Owner{Cluster: uid}
	}
	if uid, ok := strings.CutPrefix(tag, ownership.Machine+"="); ok {
		return Owner{Machine: uid}
	}
	switch {
	case strings.HasPrefix(tag, ownership.Cluster+"#"):
		return Owner{Cluster: tag}
	case strings.HasPrefix(tag, ownership.Machine+"#"):
		return Owner{Machine: tag}
	}
	return Owner{}
}

// describedMachine is what descriptions say of a machine, and describedCluster what they say of a
// cluster.
var (
	describedMachine = regexp.MustCompile(`^machine (\S+) of `)
	describedCluster = regexp.MustCompile(regexp.QuoteMeta(ownership.ClusterDescription("")) + `(\S+)$`)
)

// OwnerOfDescription reads the description of a server, a port or a floating IP.
func OwnerOfDescription(description string) Owner {
	var found Owner
	if m := describedCluster.FindStringSubmatch(description); m != nil {
		found.Cluster = m[1]
	}
	if m := describedMachine.FindStringSubmatch(description); m != nil && found.Cluster != "" {
		found.Machine = m[1]
	}
	return found
}

// OwnerOfText reads the name and the description of what Neutron holds. A name says more than it
// may only where the description says that it is ours.
func OwnerOfText(name, description string) Owner {
	found := OwnerOfDescription(description)
	if found.Cluster == "" || found.Machine != "" {
		return found
	}
	if o, ours := ownership.FromPort(found.Cluster, name, ownership.ClusterDescription(found.Cluster)); ours {
		found.Machine = o.UID
	}
	return found
}

// OwnerOfPortName reads the name of a port, of which only the driver's has this form.
func OwnerOfPortName(name string) Owner {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[2] == "" {
		return Owner{}
	}
	return Owner{Machine: parts[2]}
}
