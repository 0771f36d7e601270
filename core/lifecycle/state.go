package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// State is all that Next looks at.
type State struct {
	Now     time.Time
	Machine Machine
	// BootstrapError says why no user data can be rendered; empty when it can.
	BootstrapError string
	// BootstrapWarning says what is wrong with user data that is rendered all the same; empty for
	// nothing.
	BootstrapWarning string
	Driver           Driver
	Node             Node
	// Token is what this process knows of the machine's bootstrap token.
	Token Token
	// Clock tells how much of the time could be observed.
	Clock Clock
	// DaemonSets is what a look at the critical DaemonSets found that was had for this state; nil
	// before it.
	DaemonSets *DaemonSets
	// JoinProgress says how far a VM has got that has no Node yet; the zero value where nobody
	// can tell.
	JoinProgress JoinProgress
	// Drain is what the drain's pass found that was made for this state; nil before it.
	Drain *Drain
	// Volumes is what a look at the volumes found that was had for this state; nil before it.
	Volumes *Volumes
	// Memory is Step.Memory of the step before; the zero value for a machine that this process has
	// not seen yet.
	Memory Memory
}

// Machine is what the API server holds.
type Machine struct {
	// UID is spec.machineUID; empty until it is set.
	UID       string
	Finalizer bool
	// DeletionTimestamp is since when the Machine is on its way out; zero while it is not.
	DeletionTimestamp time.Time
	// ProviderID is spec.providerID; see State.Confirmed for what it counts.
	ProviderID string
	// UIDTaken names, for people, the Machine that has the same uid and had it first; empty for
	// none.
	UIDTaken string
	// PreDrainHooks and PreTerminateHooks name, for people and in stable words, what holds the
	// drain, and what holds the VM, of a machine on its way out; empty for nothing.
	PreDrainHooks, PreTerminateHooks string
	// SkipsDrain: an annotation asks that the drain of a machine on its way out is skipped, or what
	// is left of it. SkipsVolumes: one asks that no volume is waited for.
	SkipsDrain, SkipsVolumes bool
	// DrainTimeout bounds the drain; see timeLeft.
	DrainTimeout time.Duration
	// VolumeDetachTimeout bounds how long volumes of drained pods may be attached after the drain;
	// see timeLeft. 0 is for ever. It is spec.nodeVolumeDetachTimeout, else the manager's
	// --node-volume-detach-timeout.
	VolumeDetachTimeout time.Duration
	// UnreachableAfter is for how long nothing must be heard of the Node's kubelet for its pods not
	// to be waited for.
	UnreachableAfter time.Duration
	// StartupTimeout bounds how long the VM may be without a Ready Node before it has had one.
	// After that it bounds how long the VM may be without a Node. 0 is for ever. It is
	// spec.nodeStartupTimeout, else the manager's --node-startup-timeout.
	StartupTimeout time.Duration
	// NodeDebounce is for how long the status does not say that a Node has registered and is about
	// to become Ready. 0 is 30 s.
	NodeDebounce time.Duration
	Status       Status
	// Generation is metadata.generation: what Status.ObservedGeneration becomes.
	Generation int64
	// Paused says why nothing is to be done for the machine; the zero value when everything may be.
	Paused Pause
	// Forgotten: somebody who may do so asks that a machine on its way out goes without its VM.
	Forgotten bool
	// AwaitsDaemonSets: the machine is Running only once the pods of critical DaemonSets run on its
	// Node.
	AwaitsDaemonSets bool
	// Nodeless: the machine never has a Node, since there is no cluster that it could join. It is
	// Running once its VM runs.
	Nodeless bool
	// KubeletVersion is spec.versions.kubelet.
	KubeletVersion string
	// DeleteNow names, for people, the object on which somebody asks for the machine to be deleted
	// now; empty for none.
	DeleteNow string
}

// Pause is a reason of the condition Paused and its message.
type Pause struct{ Reason, Message string }

// JoinProgress is how far a VM has got on its way to a Node.
type JoinProgress struct {
	// Message is for people: a sentence without its full stop, in stable words.
	Message string
	// Refused: the VM was told no, and gets no further by itself.
	Refused bool
	// Approved: the VM's kubelet has its certificate, or may fetch it.
	Approved bool
}

// Clock is how long things could be observed, by this process. What is late is late by this clock:
// time in which nobody could have seen a machine get on, or helped it to, does not count. Each part
// only grows, from some start of its own.
type Clock struct {
	// Cluster counts while this process leads and the API server answers, and has done so for long
	// enough for Nodes to have reported again.
	Cluster time.Duration
	// Cloud counts while, besides, the driver takes calls.
	Cloud time.Duration
	// Nodes counts while the API server answers and most Nodes but the silent ones of machines that
	// are drained report: a kubelet of which nothing is heard then could have been heard of. It
	// stands still where nobody drains such a Node.
	Nodes time.Duration
	// Runs says whether Cloud counts now.
	Runs bool
	// Away says, for people, what is away that Cloud stands still for; empty where there is nothing
	// to tell.
	Away string
}

// Driver is what is known of the machine's driver, and through it.
type Driver struct {
	// Unknown says, for people, that there is no such driver; empty when there is one.
	// UnknownReason is the condition's reason; DriverNotFound where it is empty.
	Unknown, UnknownReason string
	// Ready: as far as is known a mutation can be sent now. Unready says why not, for people.
	Ready   bool
	Unready string
	// AwaitsTurn: the driver takes no further call now, or is being asked about the spec. The
	// machine is woken when its turn has come.
	AwaitsTurn bool
	// Held is how others of the same account were refused; nil when nothing is held back. No
	// call is made for this machine before one of theirs succeeds. The machine is woken when
	// its turn has come.
	Held *instance.Failure
	// Trouble is why the driver can be asked nothing about this machine for now; nil for nothing.
	Trouble *instance.Failure
	// Missing is why the driver is asked with a copy of the machine's Secrets; nil where it is not.
	Missing *instance.Failure
	// CreateSettle is how long after a create of unknown outcome its VM may still appear.
	CreateSettle time.Duration
	// LeadingSince is since when no other process calls drivers for this cluster.
	LeadingSince time.Time
	// UnderWay: a mutation of this machine has no outcome yet.
	UnderWay bool
	// Outcome is that of the mutation that ended last, the one time that it is handed over.
	Outcome *instance.Outcome
	// LastPoll is what the last poll of the VM found; nil when there was none.
	LastPoll *instance.Observation
	// ConsoleReadable: the driver can be asked for what the VM has written to its console. The
	// answer is there, or is given up, within ConsoleTimeout.
	ConsoleReadable bool
	ConsoleTimeout  time.Duration
	// Console is what came of the last ReadConsole; nil before the first.
	Console *instance.Console
}

// Node is the Node that fits the machine.
type Node struct {
	Match NodeMatch
	// Conflict says, for people, why no Node can be taken; only with NodeConflicting.
	Conflict string
	// HasUnknownID: the Node of the machine's name has joined with a providerID that the driver
	// does not vouch for; only with NodeConflicting.
	HasUnknownID bool
	Name         string
	UID          types.UID
	// ProviderID is the Node's; empty while it has none.
	ProviderID string
	// Synced: everything that core sets on a Node is set, and nothing is left of what it set there
	// before.
	Synced bool
	// Uninitialized: a cloud controller has yet to initialise the Node, says its taint.
	Uninitialized bool
	// HasStartupTaints: the Node has taints that core takes away when the gate opens.
	HasStartupTaints bool
	// Info is what the kubelet says of what runs on the Node; the zero value where it has not.
	Info clusterv1alpha1.NodeInfo
	// Ready is the status of the Node's condition Ready, Reason its reason; empty where there is
	// none.
	Ready  metav1.ConditionStatus
	Reason string
	// Message is that of the Node's condition Ready as it is just now. It may change with each
	// heartbeat.
	Message string
}

// Token is what a process knows of a machine's bootstrap token.
type Token struct {
	// Known: this process has read or written it, and nobody else writes it.
	Known bool
	// RenewAt is when it has to be extended if the machine still needs it; zero where there is
	// none.
	RenewAt time.Time
	// ReadAt is when this process last read or wrote it.
	ReadAt time.Time
	// NotNeeded: the machine's user data has no place for a token, and there is none.
	NotNeeded bool
	// Recheck is how often the token of a VM that has yet to join is read: nobody watches Secrets.
	// 0 is a minute.
	Recheck time.Duration
}

// NodeMatch says how many Nodes fit the machine.
type NodeMatch string

// The matches.
const (
	// NodeNone: no Node fits.
	NodeNone NodeMatch = ""
	// NodeFound: exactly one does, and it is nobody else's.
	NodeFound NodeMatch = "Found"
	// NodeConflicting: several do, or the one that does is another Machine's. None is touched.
	NodeConflicting NodeMatch = "Conflicting"
)

// DaemonSets is what a look at the critical DaemonSets found; the zero value when the pods of all
// of them run on the Node.
type DaemonSets struct {
	// Waiting names, for people and in stable words, those whose pods do not run there yet; empty
	// for none.
	Waiting string
	// Error says why nobody can tell; empty when it could be told. Waiting means nothing then.
	Error string
}

// Drain is what a pass of the drain found.
type Drain struct {
	// Done: no pod is left that has to be waited for.
	Done bool
	// Terminating: all pods that are left are terminating. Only the Node's kubelet can end them.
	Terminating bool
	// Silent: the Node is said to have stopped reporting.
	Silent bool
	// RenewTime is what the kubelet wrote last into the Node's Lease, by its own clock; zero where
	// there is no Lease. It is read of a silent Node only. LeaseError says, for people, why the
	// Lease could not be read; empty when it could.
	RenewTime  time.Time
	LeaseError string
	// Error says why the pass could not be completed; empty when it was. What else it found then
	// means nothing.
	Error string
	// Blocked names, for people and in stable words, the pods that may not be evicted now, and why;
	// empty when there is none.
	Blocked string
	// Refused names, for people and in stable words, the pods whose eviction the API server refuses
	// for other reasons.
	Refused string
	// Next says, for people and in stable words, what the next pod with volumes waits for where
	// they are evicted one at a time; empty for nothing.
	Next string
	// Remaining names, for people, pods that are still there.
	Remaining string
}

// Volumes is what a look at the volumes of a Node found, once its drain is over; the zero value
// when none has to be waited for.
type Volumes struct {
	// Attached names, for people and in stable words, the volumes that are attached; empty for
	// none. Those that only pods use which the drain leaves alone are not among them.
	Attached string
	// Error says why nobody can tell which volumes such pods use; empty when it could be told.
	Error string
}
