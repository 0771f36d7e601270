// Package ownership says how resources in OpenStack tell whose they are. Every resource carries its
// marks from its birth, in what each API takes at creation and finds again by an exact filter:
//
//	server       metadata with each mark, two tags, and a description that outlives the server
//	port         name: the machine; description: the cluster; MAC address: follows from both
//	floating IP  description: the machine and the cluster
//	volume       metadata with each mark, and with the disk's name
//
// A tag of Neutron would be clearer, but takes a second call, between which and the first a process
// can die.
package ownership

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// The keys of the metadata of servers and volumes. Users cannot set keys that begin with Prefix.
const (
	Prefix    = "millwright-"
	Cluster   = Prefix + "cluster"
	Machine   = Prefix + "machine"
	Namespace = Prefix + "namespace"
	Name      = Prefix + "name"
	// Disk is the key of a volume's metadata that says which of the machine's disks it is.
	Disk = Prefix + "disk"
)

const (
	// maxTag is the longest tag of a server that Nova takes.
	maxTag = 60
	// maxText is the longest name or description that Neutron takes, and value of metadata that
	// Nova takes.
	maxText = 255
)

// Owner is whose a resource is: a machine of a cluster.
type Owner struct{ Cluster, Namespace, Name, UID string }

// Metadata are the marks as metadata of a server or a volume.
func (o Owner) Metadata() map[string]string {
	return map[string]string{Cluster: o.Cluster, Machine: o.UID, Namespace: o.Namespace, Name: o.Name}
}

// FromMetadata returns whose a server or a volume is; false when the metadata does not say.
func FromMetadata(metadata map[string]string) (Owner, bool) {
	o := Owner{Cluster: metadata[Cluster], Namespace: metadata[Namespace], Name: metadata[Name], UID: metadata[Machine]}
	return o, o.Cluster != "" && o.UID != "" && o.Namespace != "" && o.Name != ""
}

// ClusterTag is the tag of a cluster's servers.
func ClusterTag(cluster string) string { return tag(Cluster, cluster) }

// MachineTag is the tag of a machine's servers.
func MachineTag(uid string) string { return tag(Machine, uid) }

// tag keeps to what Nova takes: 60 characters without '/' and ','. What does not fit is hashed.
func tag(key, value string) string {
	if plain := key + "=" + value; len(plain) <= maxTag && !strings.ContainsAny(value, "/,") {
		return plain
	}
	sum := sha256.Sum256([]byte(value))
	return key + "#" + hex.EncodeToString(sum[:16])
}

// Description is that of the machine's servers and floating IPs. Nova keeps a server's when it is
// deleted.
func (o Owner) Description() string {
	return "machine " + shortened(o.UID) + " of " + ClusterDescription(o.Cluster)
}

// ClusterDescription is that of the cluster's ports.
func ClusterDescription(cluster string) string { return "millwright cluster " + shortened(cluster) }

// FromDescription returns the cluster's machine that a floating IP or a deleted server is of; false
// when it is none of this cluster's. Its namespace and name, which a description has no room for,
// are its uid, as the contract has it for leftovers.
func FromDescription(cluster, description string) (Owner, bool) {
	uid, ours := strings.CutSuffix(description, " of "+ClusterDescription(cluster))
	if !ours {
		return Owner{}, false
	}
	uid, ours = strings.CutPrefix(uid, "machine ")
	return Owner{Cluster: cluster, Namespace: uid, Name: uid, UID: uid}, ours && uid != ""
}

// IsMarked says whether a description is that of a floating IP or a server of any machine.
func IsMarked(description string) bool {
	return strings.HasPrefix(description, "machine ") && strings.Contains(description, " of millwright cluster ")
}

// shortened keeps two identifiers and the words around them within a description.
func shortened(id string) string {
	const most = 100
	if len(id) <= most {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// PortName is the name of the machine's ports: all three parts of its ref, or where they do not fit
// the uid. An owner that stands for what has room for the uid alone (FromPort, FromDescription) is
// found by the latter, too.
func (o Owner) PortName() string {
	whole := o.Namespace + "/" + o.Name + "/" + o.UID
	if len(whole) > maxText || o.Namespace == o.UID && o.Name == o.UID {
		return "//" + o.UID
	}
	return whole
}

// FromPort returns the cluster's machine that a port is of, by the port's name and description;
// false when it is none of this cluster's.
func FromPort(cluster, name, description string) (Owner, bool) {
	parts := strings.Split(name, "/")
	if description != ClusterDescription(cluster) || len(parts) != 3 || parts[2] == "" {
		return Owner{}, false
	}
	o := Owner{Cluster: cluster, Namespace: parts[0], Name: parts[1], UID: parts[2]}
	if o.Namespace == "" || o.Name == "" {
		o.Namespace, o.Name = o.UID, o.UID
	}
	return o, true
}

// MAC is the address of the machine's port of an index. Neutron holds it unique in a network, so
// that a second port of the same machine is refused, whoever asks for it: see Owner.PortName for
// how the first one is found.
func (o Owner) MAC(index int) string {
	sum := sha256.Sum256([]byte(o.Cluster + "\x00" + o.UID + "\x00" + strconv.Itoa(index)))
	address := net.HardwareAddr(sum[:6])
	address[0] = address[0]&^1 | 2 // of one interface, and administered locally
	return address.String()
}

// String returns the owner as people know it.
func (o Owner) String() string { return fmt.Sprintf("%s/%s", o.Namespace, o.Name) }

// ServerName is the name of the machine's server.
func (o Owner) ServerName() string { return o.Name }
