package lifecycle

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// Status is what stands in a Machine's status, but for times of transition and the generation.
type Status struct {
	Phase clusterv1alpha1.MachinePhase
	// Conditions, sorted by type. Those of types that lifecycle does not own are not among them.
	Conditions []Condition
	// NodeName is nodeRef's; empty while there is none.
	NodeName string
	// ProviderID is the VM's id as the driver gave it, ProviderIDAliases are its other ids. They
	// are written when something else is.
	ProviderID        string
	ProviderIDAliases []string
	Addresses         []instance.Address
	LastOperation     *Operation
	LastKnownState    []byte
	// Failure is why the machine is Failed for good; nil while it is not, and once it has had a
	// Node.
	Failure *Failure
}

// Condition is a condition of a Machine, but for its times.
type Condition struct {
	Type            string
	Status          metav1.ConditionStatus
	Reason, Message string
}

// Operation is what was last asked of the cloud.
type Operation struct {
	Type        clusterv1alpha1.OperationType
	State       clusterv1alpha1.OperationState
	Description string
	At          time.Time
}

// Failure is a word for programs and the cause in the cloud's own words.
type Failure struct{ Reason, Message string }

// Condition returns the condition of a type; the zero value when there is none.
func (s Status) Condition(typ string) Condition {
	for _, c := range s.Conditions {
		if c.Type == typ {
			return c
		}
	}
	return Condition{}
}

// Equal says whether a and b tell a reader the same. What the driver confirmed of the providerID is
// told along with other news.
func (s Status) Equal(b Status) bool {
	return s.Phase == b.Phase && s.NodeName == b.NodeName &&
		slices.Equal(s.Conditions, b.Conditions) && slices.Equal(s.Addresses, b.Addresses) &&
		bytes.Equal(s.LastKnownState, b.LastKnownState) &&
		samePointed(s.LastOperation, b.LastOperation, Operation.equal) &&
		samePointed(s.Failure, b.Failure, func(a, b Failure) bool { return a == b })
}

// equal leaves the time out: an operation that reads the same has not changed.
func (o Operation) equal(b Operation) bool {
	o.At = b.At
	return o == b
}

func samePointed[T any](a, b *T, equal func(a, b T) bool) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equal(*a, *b)
}

// hasProviderID says whether id was written down as the VM's.
func (s Status) hasProviderID(id string) bool {
	return s.ProviderID != "" && (id == s.ProviderID || slices.Contains(s.ProviderIDAliases, id))
}

// set returns s with a condition set, unless c is the zero value; s itself stays as it is.
func (s Status) set(c Condition) Status {
	if c == s.Condition(c.Type) {
		return s
	}
	s.Conditions = slices.Clone(s.Conditions)
	at, found := slices.BinarySearchFunc(s.Conditions, c.Type, func(one Condition, typ string) int {
		return cmp.Compare(one.Type, typ)
	})
	if found {
		s.Conditions[at] = c
		return s
	}
	s.Conditions = slices.Insert(s.Conditions, at, c)
	return s
}

// without returns s without the condition of a type; s itself stays as it is.
func (s Status) without(typ string) Status {
	if s.Condition(typ).Type == "" {
		return s
	}
	s.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c Condition) bool { return c.Type == typ })
	return s
}
