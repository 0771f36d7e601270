package plan

import (
	"time"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// Round is what happens in one round.
type Round struct {
	Seed   uint64
	Number int
	// Steps in the order of their time.
	Steps []Step
}

// Step is one thing that happens.
type Step struct {
	// At is when it begins, from the beginning of the round, and Lasts how long it takes; 0: it is
	// done at once.
	At, Lasts time.Duration
	Do        Verb
	// Target is a deployment, a process or a link, by its name.
	Target string
	// Number is a size, or which machine of how many.
	Number int
	// Shape is what Apply gives a deployment.
	Shape Shape
	// Fault is what Break does to the cloud, and Change what Change does to a VM.
	Fault  *backendv1alpha1.Fault
	Change backendv1alpha1.VMChange
}

// Verb says what a Step does.
type Verb string

// What users do to the deployment that is the Target. One that does not exist is made by Apply, and
// left alone by the rest.
const (
	// Apply gives the deployment Shape.
	Apply Verb = "apply"
	// Scale gives it Number machines.
	Scale Verb = "scale"
	// Delete deletes it.
	Delete Verb = "delete"
	// DeleteMachine deletes one of its machines by hand, and Mark marks one to go first: that with
	// the index Number, modulo their number, of those there are, by name.
	DeleteMachine Verb = "delete machine of"
	Mark          Verb = "mark machine of"
	// DeleteNode deletes the Node of one of its machines, as Mark chooses, and Replace asks for one
	// to be replaced.
	DeleteNode Verb = "delete node of a machine of"
	Replace    Verb = "replace machine of"
	// Hook deletes one of its machines by hand, as Mark chooses, and holds the deletion by an
	// annotation for Lasts: before the drain where Number is a multiple of three, else before the
	// VM goes.
	Hook Verb = "hold the deletion of a machine of"
	// Pause pauses it, by annotation, for Lasts; Hold pauses its rollout.
	Pause Verb = "pause"
	Hold  Verb = "hold the rollout of"
)

// What users do to the team: a namespace with machines, credentials, a MachineClass and a Cluster
// of its own, all of them called Team.
const (
	// ApplyTeam makes what is missing of it, and gives it Number machines. While it is being
	// deleted it is left alone.
	ApplyTeam Verb = "apply all of"
	// DeleteNamespace deletes the namespace with all in it.
	DeleteNamespace Verb = "delete the namespace of"
	// DeleteManifest deletes all in the namespace, first what the machines are deleted with, as
	// `kubectl delete -f` does.
	DeleteManifest Verb = "delete all of"
	// DeleteSecret deletes the Secret with the credentials, and makes it anew after Lasts.
	DeleteSecret Verb = "delete the Secret of" //nolint:gosec // it is a name
	// DeleteBinding deletes the RoleBinding that lets the manager read the Secret, and makes it
	// anew after Lasts.
	DeleteBinding Verb = "delete the RoleBinding of"
)

// Detach deletes a machine by hand to which volumes are attached. They are those of two pods, of
// which a drain leaves one alone, and are attached before the round begins: whoever drains the
// machine has to know of them. A volume is detached Lasts after its pod is gone. Number chooses the
// machine, modulo their number, of those that have Nodes.
const Detach Verb = "delete a machine with volumes"

// Claim makes a Machine by hand that names a VM which is not its own, by its providerID, and
// deletes it after Lasts. Number chooses the VM, modulo their number: first those that are foreign,
// then those of other Machines.
const Claim Verb = "make a machine with a foreign providerID"

// What goes wrong.
const (
	// Kill ends the process Target by SIGKILL, and starts it again after Lasts.
	Kill Verb = "kill"
	// Stop has the process Target do nothing for Lasts, by SIGSTOP and SIGCONT.
	Stop Verb = "stop"
	// Cut breaks the connections of the link Target, and takes no new ones for Lasts.
	Cut Verb = "cut"
	// Stall has nothing arrive over the link Target for Lasts.
	Stall Verb = "stall"
	// Break has the cloud misbehave by Fault, until the round's disturbances end.
	Break Verb = "break"
	// Limit lets there be Number VMs more than there are, until the round's disturbances end.
	Limit Verb = "limit"
	// Change does Change to a VM: that with the index Number, modulo their number, of those that
	// run, by name.
	Change Verb = "change VM"
	// Outage runs pods on the machines of the deployment Target and deletes some of the machines.
	// While they are drained, it takes the API server of the Nodes away for Lasts. It is left alone
	// where no machine has a Node.
	Outage Verb = "take the API server away while draining"
	// Sicken has the Node of one of the machines of the deployment Target, as Mark chooses, report
	// for Lasts that it is not Ready, as a kubelet whose container runtime hangs.
	Sicken Verb = "sicken a machine of"
	// Stray leaves a VM of this cluster without a Machine, as one that was lost.
	Stray Verb = "leave a stray VM"
)

// Shape is what a user wants of a deployment.
type Shape struct {
	Replicas int
	// Surge and Unavailable bound rollouts; not both are 0.
	Surge, Unavailable int
	// Template is one of few: going back to one of before is part of the game.
	Template int
	// MinReady is minReadySeconds.
	MinReady int
}

// Templates is how many templates there are.
const Templates = 3

// Deployments are the names of those that users work on.
func Deployments() []string { return []string{"ash", "elm", "oak"} }

// Team is the team's name.
const Team = "team"

// Processes and links that are disturbed.
const (
	Manager   = "manager"
	Driver    = "driver"
	APIServer = "kube-apiserver"
	Etcd      = "etcd"
	// Those of the cluster of the Nodes, where that is another one.
	WorkloadAPIServer = "workload/kube-apiserver"
	WorkloadEtcd      = "workload/etcd"
)
