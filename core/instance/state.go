package instance

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// State is the cloud's view of a VM. Sources: MachineState in machine.proto.
type State string

// The states a driver can report.
const (
	Creating State = "Creating"
	Running  State = "Running"
	Updating State = "Updating"
	Stopping State = "Stopping"
	Stopped  State = "Stopped"
	Deleting State = "Deleting"
	Failed   State = "Failed"
)

// Instance is one VM as its driver last described it. The zero value means "nothing known".
type Instance struct {
	// ProviderID is what Node.spec.providerID will be, byte for byte; empty while there is no VM.
	ProviderID string
	// NodeName is set where the cloud decides under which name the node registers.
	NodeName string
	State    State
	// Reason is one CamelCase word, Message the cloud's own words.
	Reason, Message string
	Addresses       []corev1.NodeAddress
	// PollAfter is how long the driver asks core to wait before the next poll; 0 leaves it to core.
	PollAfter time.Duration
	// LastKnownState goes back to the driver with the next call; core never looks inside.
	LastKnownState []byte
	// DuplicateProviderIDs are other VMs that carry the same uid: a broken promise that must be
	// shown.
	DuplicateProviderIDs []string
	// ProviderIDAliases are other ids that the Node of this VM may have; the driver vouches for
	// them.
	ProviderIDAliases []string
}

// Has says whether id names this VM, or another one that carries the same uid.
func (i *Instance) Has(id string) bool {
	return id != "" && (id == i.ProviderID || slices.Contains(i.ProviderIDAliases, id) ||
		slices.Contains(i.DuplicateProviderIDs, id))
}
