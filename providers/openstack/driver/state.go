package driver

import (
	"net/http"
	"strings"
	"time"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/session"
)

// The statuses of servers that the driver tells apart:
// https://docs.openstack.org/api-guide/compute/server_concepts.html.
const (
	statusActive      = "ACTIVE"
	statusBuild       = "BUILD"
	statusDeleted     = "DELETED"
	statusError       = "ERROR"
	statusSoftDeleted = "SOFT_DELETED"
)

// taskDeleting is the task of a server whose deletion Nova has accepted. It stays when a host is
// lost before it has heard of it.
const taskDeleting = "deleting"

// finishing is how long a server may take to go: be deleted by its host, and DELETED and still
// listed while Nova counts what it has set free. One that takes longer may have lost its host, and
// only another request, once Nova knows that, makes an end of it. Otherwise Nova ignores it.
const finishing = 5 * time.Minute

// leaving says whether Nova is deleting the server and needs no other request for it.
func (s server) leaving(now time.Time) bool {
	return (s.TaskState == taskDeleting || s.Status == statusDeleted) && now.Sub(s.Updated) < finishing
}

// hasRun says whether the server ever ran. Nova sets launched_at when a server is spawned, rescued,
// resized or restored, and never clears it.
func (s server) hasRun() bool { return s.Launched != nil && *s.Launched != "" }

// isVM says whether there is, or was, a VM. Nova takes a server before its scheduler looks for a
// host. One that gets none for want of room or quota is a request that was refused, only later: the
// next create asks again, with the same ports.
func (s server) isVM() bool {
	switch {
	case s.HostID != "" || s.hasRun():
		return true
	case s.Status == statusBuild:
		return false
	}
	return s.refusal() == 0
}

// refusal is the error that a server in ERROR stands for which never had a host; 0 for others.
func (s server) refusal() driverv1alpha1.ErrorReason {
	if s.Status != statusError || s.HostID != "" || s.hasRun() {
		return 0
	}
	return s.Fault.cause()
}

// states are the statuses in which a server is neither on its way nor gone. Whatever does not run
// the machine's own system but could do so again is STOPPED: only a health check replaces it.
var states = map[string]driverv1alpha1.MachineState{
	statusActive:        driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
	statusBuild:         driverv1alpha1.MachineState_MACHINE_STATE_CREATING,
	statusError:         driverv1alpha1.MachineState_MACHINE_STATE_FAILED,
	statusDeleted:       driverv1alpha1.MachineState_MACHINE_STATE_DELETING,
	statusSoftDeleted:   driverv1alpha1.MachineState_MACHINE_STATE_DELETING,
	"SHUTOFF":           driverv1alpha1.MachineState_MACHINE_STATE_STOPPED,
	"PAUSED":            driverv1alpha1.MachineState_MACHINE_STATE_STOPPED,
	"SUSPENDED":         driverv1alpha1.MachineState_MACHINE_STATE_STOPPED,
	"RESCUE":            driverv1alpha1.MachineState_MACHINE_STATE_STOPPED,
	"SHELVED":           driverv1alpha1.MachineState_MACHINE_STATE_STOPPED,
	"SHELVED_OFFLOADED": driverv1alpha1.MachineState_MACHINE_STATE_STOPPED,
	"HARD_REBOOT":       driverv1alpha1.MachineState_MACHINE_STATE_UPDATING,
	"MIGRATING":         driverv1alpha1.MachineState_MACHINE_STATE_UPDATING,
	"PASSWORD":          driverv1alpha1.MachineState_MACHINE_STATE_UPDATING,
	"REBOOT":            driverv1alpha1.MachineState_MACHINE_STATE_UPDATING,
	"REBUILD":           driverv1alpha1.MachineState_MACHINE_STATE_UPDATING,
	"RESIZE":            driverv1alpha1.MachineState_MACHINE_STATE_UPDATING,
	"REVERT_RESIZE":     driverv1alpha1.MachineState_MACHINE_STATE_UPDATING,
	"VERIFY_RESIZE":     driverv1alpha1.MachineState_MACHINE_STATE_UPDATING,
	// Nova cannot reach the host.
	"UNKNOWN": driverv1alpha1.MachineState_MACHINE_STATE_UPDATING,
}

// stopping are the tasks of a server that still is ACTIVE and soon will not be.
var stopping = map[string]bool{
	"powering-off": true, "pausing": true, "suspending": true, "shelving": true, "shelving_image_pending_upload": true,
	"shelving_image_uploading": true, "shelving_offloading": true, "rescuing": true,
}

// state is the server's state in the contract's terms, with the word and, where it failed, the
// words of Nova for it.
func (s server) state() (state driverv1alpha1.MachineState, reason, message string) {
	if strings.Contains(s.TaskState, taskDeleting) { // soft-deleting is one, too
		return driverv1alpha1.MachineState_MACHINE_STATE_DELETING, "", ""
	}
	if s.Status == statusActive && stopping[s.TaskState] {
		return driverv1alpha1.MachineState_MACHINE_STATE_STOPPING, "", ""
	}
	state, known := states[s.Status]
	switch {
	case !known:
		return driverv1alpha1.MachineState_MACHINE_STATE_UPDATING, "StatusUnknown", "Nova says that the server is " + s.Status + "."
	case s.Status == statusError && s.hasRun():
		// A resize or a migration went wrong. The server has its disk and its ports and may well be
		// running. It is up again after a reset of its state or a hard reboot.
		return driverv1alpha1.MachineState_MACHINE_STATE_STOPPED, s.Fault.reason(), "The server ran, and is in ERROR now. " + s.Fault.words()
	case s.Status == statusError:
		return state, s.Fault.reason(), s.Fault.words()
	case state == driverv1alpha1.MachineState_MACHINE_STATE_STOPPED || s.Status == "UNKNOWN":
		return state, "ServerStatus", "Nova says that the server is " + s.Status + "."
	}
	return state, "", ""
}

// cause is the error that Nova would have answered, had it known at once: that of a quota or of
// missing capacity; 0 for other faults.
func (f fault) cause() driverv1alpha1.ErrorReason {
	// Nova took the server, and saw only when it came to build it that others had used up the
	// quota.
	if f.Code == http.StatusRequestEntityTooLarge {
		return driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED
	}
	return session.ReasonOfFault(f.Message)
}

// reason is the kind of the failure.
func (f fault) reason() string {
	switch f.cause() {
	case driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED:
		return "QuotaExceeded"
	case driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE:
		return "CapacityUnavailable"
	}
	return "ServerError"
}

// words are why the server failed; Nova does not always say.
func (f fault) words() string {
	if f.Message == "" {
		return "Nova says that the server is in ERROR, and not why."
	}
	return f.Message
}
