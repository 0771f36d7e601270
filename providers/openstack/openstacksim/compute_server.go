package openstacksim

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// The states of a server, as Nova has them.
const (
	vmBuilding = "building"
	vmActive   = "active"
	vmStopped  = "stopped"
	vmError    = "error"
	vmDeleted  = "deleted"

	vmPaused    = "paused"
	vmSuspended = "suspended"
	vmRescued   = "rescued"
	vmShelved   = "shelved_offloaded"
	vmResized   = "resized"

	taskScheduling = "scheduling"
	taskSpawning   = "spawning"
	taskDeleting   = "deleting"
)

// The power states of a server.
const (
	powerNone    = 0
	powerRunning = 1
	powerPaused  = 3
	powerOff     = 4
)

// server is a server of Nova.
type server struct {
	record
	UserID string `json:"userID"`
	// Described says that Description was given; without one it is null.
	Described bool              `json:"described,omitempty"`
	VMState   string            `json:"vmState"`
	TaskState string            `json:"taskState,omitempty"`
	Power     int               `json:"power,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	Tags      []string          `json:"tags,omitempty"`
	Flavor    serverFlavor      `json:"flavor"`
	Resized   *resize           `json:"resized,omitempty"`
	// Image is empty for a server that boots from a volume.
	Image       string `json:"image,omitempty"`
	Zone        string `json:"zone,omitempty"`
	ConfigDrive bool   `json:"configDrive,omitempty"`
	KeyName     string `json:"keyName,omitempty"`
	Group       string `json:"group,omitempty"`
	// Interfaces are what it was asked for with; Bound says that its ports know of it.
	Interfaces []networkInterface `json:"interfaces,omitempty"`
	Bound      bool               `json:"bound,omitempty"`
	BoundAt    time.Time          `json:"boundAt,omitzero"`
	// Groups are the security groups of the ports that Nova makes.
	Groups []string     `json:"groups,omitempty"`
	Disks  []attachment `json:"disks,omitempty"`
	Locked bool         `json:"locked,omitempty"`
	Fault  *serverFault `json:"fault,omitempty"`
	// Hostless says that it was never on a host: then only the server itself tells its fault, no
	// list does.
	Hostless   bool      `json:"hostless,omitempty"`
	Launched   time.Time `json:"launched,omitzero"`
	Terminated time.Time `json:"terminated,omitzero"`
	// Due is when the state changes by itself; zero: never.
	Due time.Time `json:"due,omitzero"`
	// BootFault is what the server will fail with when it has booted.
	BootFault string `json:"bootFault,omitempty"`
	// Printed is what a test had the server print on its console.
	Printed  string `json:"printed,omitempty"`
	Revision int64  `json:"revision"`
	Owner    owner  `json:"owner,omitzero"`
	// userData is as it came: base64. It is journaled once, beside the server: it is big and never
	// changes.
	userData string
}

// serverFlavor is the flavor as it was when the server was made.
type serverFlavor struct {
	ID    string            `json:"id"`
	Name  string            `json:"name"`
	VCPUs int               `json:"vcpus"`
	RAM   int               `json:"ram"`
	Disk  int               `json:"disk"`
	Specs map[string]string `json:"specs,omitempty"`
}

// networkInterface is one that a server was asked for with: by a port, or by a network in which
// Nova makes a port.
type networkInterface struct {
	Port    string `json:"port,omitempty"`
	Network string `json:"network,omitempty"`
	Address string `json:"address,omitempty"`
	// Made says that Nova made the port, and will delete it with the server.
	Made bool `json:"made,omitempty"`
}

// attachment is a volume of a server.
type attachment struct {
	ID     string `json:"id"`
	Volume string `json:"volume"`
	Device string `json:"device"`
	Boot   bool   `json:"boot,omitempty"`
	// Ends says that the volume is deleted with the server.
	Ends bool `json:"ends,omitempty"`
}

// serverFault is why a server is in ERROR.
type serverFault struct {
	Code    int       `json:"code"`
	Message string    `json:"message"`
	Created time.Time `json:"created"`
}

// The keys under which servers are found.
const (
	byTag  = "tag"
	byName = "name"
)

func (s *server) keys() []key {
	keys := []key{{byName, strings.ToLower(s.Name)}}
	for _, tag := range s.Tags {
		keys = append(keys, key{byTag, tag})
	}
	return keys
}

func (s *server) gone() bool     { return s.VMState == vmDeleted }
func (s *server) deleting() bool { return s.TaskState == taskDeleting }

// status is what Nova makes of the states.
func (s *server) status() string {
	for status, state := range statuses {
		if state == s.VMState {
			return strings.ToUpper(status)
		}
	}
	return "UNKNOWN"
}

// hooked is the state as tests see it: what is neither building, running nor gone, nor has failed
// before it ran, is stopped.
func (s *server) hooked() backendv1alpha1.VMState {
	if s.deleting() {
		return backendv1alpha1.VMState_VM_STATE_DELETING
	}
	switch s.VMState {
	case vmBuilding:
		return backendv1alpha1.VMState_VM_STATE_BUILDING
	case vmActive, vmResized:
		return backendv1alpha1.VMState_VM_STATE_RUNNING
	case vmError:
		if s.Launched.IsZero() {
			return backendv1alpha1.VMState_VM_STATE_FAILED
		}
	case vmDeleted:
		return backendv1alpha1.VMState_VM_STATE_GONE
	}
	return backendv1alpha1.VMState_VM_STATE_STOPPED
}

// hostID is how Nova tells members on which host a server is: not by its name.
func (s *server) hostID() string {
	if !s.Bound || s.VMState == vmShelved {
		return ""
	}
	sum := sha256.Sum224([]byte(s.Project + "compute1"))
	return hex.EncodeToString(sum[:])
}

// portIDs are the ports that the server has.
func (s *server) portIDs() []string {
	var ids []string
	for _, i := range s.Interfaces {
		if i.Port != "" {
			ids = append(ids, i.Port)
		}
	}
	return ids
}

// bootsForever as a BootFault stands for a server that never leaves BUILD.
const bootsForever = "\x00"

// putServer takes in a server that is new, here or in the journal.
func (c *Cloud) putServer(s *server) {
	c.servers[s.Seq] = s
	c.seq = max(c.seq, s.Seq)
	c.own(s.ID, s.Owner)
	if s.Owner != (owner{}) {
		c.nameOwners[s.Name] = s.Owner
	}
	if s.gone() {
		c.inter(s)
		return
	}
	c.alive.put(s)
	c.countAlive(s, 1)
}

// countAlive keeps the counts of servers, and their peaks.
func (c *Cloud) countAlive(s *server, by int64) {
	clusters := []string{""}
	if s.Owner.Cluster != "" {
		clusters = append(clusters, s.Owner.Cluster)
	}
	for _, cluster := range clusters {
		c.aliveCount[cluster] += by
		c.peak[cluster] = max(c.peak[cluster], c.aliveCount[cluster])
	}
}

// touch gives the server a new revision, and has it written down.
func (c *Cloud) touch(s *server) {
	s.Revision = c.history.Note(s.Seq)
	c.history.Tidy(len(c.servers), c.currentServer)
	c.front.Wake()
	c.note(s, false)
}

func (c *Cloud) currentServer(ch testcloud.Change) bool {
	return c.servers[ch.Key].Revision == ch.Revision
}

// reindex notes that what a server is found by has changed.
func (c *Cloud) reindex(s *server) {
	if !s.gone() {
		c.alive.put(s)
	}
}

// serversOf returns the members of a server group.
func (c *Cloud) serversOf(group string) []string {
	members := []string{}
	for _, s := range c.alive.ordered {
		if s.Group == group {
			members = append(members, s.ID)
		}
	}
	slices.Sort(members)
	return members
}

// inter remembers a server that is gone.
func (c *Cloud) inter(s *server) {
	c.buried = append(c.buried, s)
	c.gone[s.ID] = s
}
