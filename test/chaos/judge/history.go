package judge

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// History is what happened since the last one that was judged.
type History struct {
	// Changes of objects, in etcd's order; in that in which they were seen where there are two.
	Changes []Change
	// VMs are those that changed, as they are now, the ones that are gone included.
	VMs []*backendv1alpha1.VM
	// Calls of the cloud's API that came further, as they are now.
	Calls []*backendv1alpha1.Call
	// Resources are all that the cloud holds at the end.
	Resources []*backendv1alpha1.Resource
	// Writes are those of the API server's audit log.
	Writes []Write
	// Acts are what chaos did, Ends the processes that ended though nobody asked them to, Finds
	// what their logs held.
	Acts  []Act
	Ends  []End
	Finds []Find
	// Unsettled says what was not as it should be when time was up; empty if all was well.
	Unsettled string
}

// Change is a change of an object.
type Change struct {
	Revision int64
	// At is when it was seen, a moment after it happened.
	At time.Time
	// Object is as it is now, or was last.
	Object client.Object
	Gone   bool
}

// Write is a write that the API server carried out. Resource has the subresource behind a slash.
type Write struct {
	At                           time.Time
	User, Verb, Resource         string
	Subresource, Namespace, Name string
	Code                         int
}

// Act is what chaos did, or began to do.
type Act struct {
	At, Until time.Time
	Do        Deed
	// Target is a process or link, a Machine as namespace/name, or the id of a VM.
	Target string
}

// Deed says what an Act was.
type Deed string

const (
	// Killed: the process was killed at At and started again at Until.
	Killed Deed = "killed"
	// Hindered: the process or link did not do its work.
	Hindered Deed = "hindered"
	// DeletedByHand: a user deleted the Machine.
	DeletedByHand Deed = "deleted by hand"
	// Planted: this VM of the cluster was made without a Machine.
	Planted Deed = "planted"
	// Changed: somebody else changed this VM, which may not run any more.
	Changed Deed = "changed"
)

// End is the end of a process that nobody asked to end.
type End struct {
	At             time.Time
	Process, State string
	// Tail is the end of its log.
	Tail string
}

// Find is something in a log that must not be there.
type Find struct {
	Process, What, Line string
}

// Violation is a promise that was not kept.
type Violation struct {
	// Promise is the invariant's name, as in docs/chaos.md.
	Promise string
	At      time.Time
	What    string
}

// String is one line.
func (v Violation) String() string {
	return fmt.Sprintf("%s %s: %s", v.At.UTC().Format("15:04:05.000"), v.Promise, v.What)
}

// The promises.
const (
	OneVM        = "I1 one VM"
	NoneLeft     = "I2 none left"
	Surge        = "I3 surge"
	Availability = "I4 availability"
	Foreign      = "I5 nothing foreign"
	Stories      = "I6 stories"
	Secrets      = "I7 secrets"
	Sound        = "I8 sound processes"
	Settles      = "I9 settles"
	Pods         = "I10 pods"
	Hooks        = "I11 hooks"
	Health       = "I12 health checks"
	Volumes      = "I13 volumes"
)
