package compute

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// The states of a server, as Nova has them.
const (
	VMBuilding = "building"
	VMActive   = "active"
	VMStopped  = "stopped"
	VMError    = "error"
	VMDeleted  = "deleted"

	VMPaused    = "paused"
	VMSuspended = "suspended"
	VMRescued   = "rescued"
	VMShelved   = "shelved_offloaded"
	VMResized   = "resized"

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

// Server is a server of Nova.
type Server struct {
	state.Record
	UserID string `json:"userID"`
	// Described says that Description was given; without one it is null.
	Described bool              `json:"described,omitempty"`
	VMState   string            `json:"vmState"`
	TaskState string            `json:"taskState,omitempty"`
	Power     int               `json:"power,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	Tags      []string          `json:"tags,omitempty"`
	Flavor    ServerFlavor      `json:"flavor"`
	Resized   *Resize           `json:"resized,omitempty"`
	// Image is empty for a server that boots from a volume.
	Image       string `json:"image,omitempty"`
	Zone        string `json:"zone,omitempty"`
	ConfigDrive bool   `json:"configDrive,omitempty"`
	KeyName     string `json:"keyName,omitempty"`
	Group       string `json:"group,omitempty"`
	// Interfaces are what it was asked for with; Bound says that its ports know of it.
	Interfaces []NetworkInterface `json:"interfaces,omitempty"`
	Bound      bool               `json:"bound,omitempty"`
	BoundAt    time.Time          `json:"boundAt,omitzero"`
	// Groups are the security groups of the ports that Nova makes.
	Groups []string     `json:"groups,omitempty"`
	Disks  []Attachment `json:"disks,omitempty"`
	Locked bool         `json:"locked,omitempty"`
	Fault  *Fault       `json:"fault,omitempty"`
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
	Printed  string      `json:"printed,omitempty"`
	Revision int64       `json:"revision"`
	Owner    state.Owner `json:"owner,omitzero"`
	// UserData is as it came: base64. It is journaled once, beside the server: it is big and never
	// changes.
	UserData string `json:"-"`
}

// ServerFlavor is the flavor as it was when the server was made.
type ServerFlavor struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	VCPUs int    `json:"vcpus"`
	RAM   int    `json:"ram"`
	Disk  int    `json:"disk"`
	// Ephemeral is in GiB.
	Ephemeral int               `json:"ephemeral,omitempty"`
	Specs     map[string]string `json:"specs,omitempty"`
}

// FlavorOf returns a flavor as it is now.
func FlavorOf(f *Flavor) ServerFlavor {
	return ServerFlavor{ID: f.ID, Name: f.Name, VCPUs: f.VCPUs, RAM: f.RAM, Disk: f.Disk, Ephemeral: f.Ephemeral, Specs: f.Specs}
}

// NetworkInterface is one that a server was asked for with: by a port, or by a network in which
// Nova makes a port.
type NetworkInterface struct {
	Port    string `json:"port,omitempty"`
	Network string `json:"network,omitempty"`
	Address string `json:"address,omitempty"`
	// Made says that Nova made the port, and will delete it with the server.
	Made bool `json:"made,omitempty"`
}

// Fault is why a server is in ERROR.
type Fault struct {
	Code    int       `json:"code"`
	Message string    `json:"message"`
	Created time.Time `json:"created"`
}

// byTag is the attribute under which servers are found by their tags.
const byTag = "tag"

// Keys implements state.Resource.
func (s *Server) Keys() []state.Key {
	keys := []state.Key{{state.ByName, strings.ToLower(s.Name)}}
	for _, tag := range s.Tags {
		keys = append(keys, state.Key{byTag, tag})
	}
	return keys
}

// Gone says that the server was deleted, and is still remembered.
func (s *Server) Gone() bool { return s.VMState == VMDeleted }

func (s *Server) deleting() bool { return s.TaskState == taskDeleting }

// status is what Nova makes of the states.
func (s *Server) status() string {
	for status, vmState := range statuses {
		if vmState == s.VMState {
			return strings.ToUpper(status)
		}
	}
	return "UNKNOWN"
}

// hostID is how Nova tells members on which host a server is: not by its name.
func (s *Server) hostID() string {
	if !s.Bound || s.VMState == VMShelved {
		return ""
	}
	sum := sha256.Sum224([]byte(s.Project + "compute1"))
	return hex.EncodeToString(sum[:])
}

// PortIDs are the ports that the server has.
func (s *Server) PortIDs() []string {
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
