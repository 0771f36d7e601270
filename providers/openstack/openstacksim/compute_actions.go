package openstacksim

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// action is one of POST /servers/{id}/action that puts a server into another state. Here that
// happens at once.
type action struct {
	// operation is what the ledger has; method is Nova's name for it.
	operation, method string
	from              []string
	to                string
	power             int
	// locks and unlocks change no state.
	locks, unlocks bool
	// moves says that the server goes to another host, on which it may fail.
	moves bool
	// admin is the policy's rule where only administrators may; else empty.
	admin string
}

var actions = map[string]action{
	"os-stop":  {operation: "StopServer", method: "stop", from: []string{vmActive, vmError}, to: vmStopped, power: powerOff},
	"os-start": {operation: "StartServer", method: "start", from: []string{vmStopped}, to: vmActive, power: powerRunning},
	"reboot":   {operation: "RebootServer", method: "reboot", from: []string{vmActive, vmStopped, vmError}, to: vmActive, power: powerRunning},
	"pause":    {operation: "PauseServer", method: "pause", from: []string{vmActive}, to: vmPaused, power: powerPaused},
	"unpause":  {operation: "UnpauseServer", method: "unpause", from: []string{vmPaused}, to: vmActive, power: powerRunning},
	"suspend":  {operation: "SuspendServer", method: "suspend", from: []string{vmActive}, to: vmSuspended, power: powerOff},
	"resume":   {operation: "ResumeServer", method: "resume", from: []string{vmSuspended}, to: vmActive, power: powerRunning},
	"rescue":   {operation: "RescueServer", method: "rescue", from: []string{vmActive, vmStopped, vmError}, to: vmRescued, power: powerOff},
	"unrescue": {operation: "UnrescueServer", method: "unrescue", from: []string{vmRescued}, to: vmActive, power: powerRunning},
	"shelve":   {operation: "ShelveServer", method: "shelve", from: []string{vmActive, vmStopped, vmPaused, vmSuspended}, to: vmShelved, power: powerOff},
	"unshelve": {operation: "UnshelveServer", method: "unshelve", from: []string{vmShelved}, to: vmActive, power: powerRunning},
	"resize":   {operation: "ResizeServer", method: "resize", from: []string{vmActive, vmStopped}, to: vmResized, power: powerRunning, moves: true},
	"migrate":  {operation: "MigrateServer", method: "migrate", from: []string{vmActive, vmStopped}, to: vmResized, power: powerRunning, moves: true, admin: "migrate_server:migrate"},
	"os-migrateLive": {
		operation: "LiveMigrateServer", method: "live_migrate", from: []string{vmActive, vmPaused}, to: vmActive, power: powerRunning, moves: true,
		admin: "migrate_server:migrate_live",
	},
	"confirmResize": {operation: "ConfirmResize", method: "confirm_resize", from: []string{vmResized}, to: vmActive, power: powerRunning},
	"revertResize":  {operation: "RevertResize", method: "revert_resize", from: []string{vmResized}, to: vmActive, power: powerRunning},
	"lock":          {operation: "LockServer", locks: true},
	"unlock":        {operation: "UnlockServer", unlocks: true},
	resetAction:     {operation: "ResetServer"},
	consoleAction:   {operation: "GetConsoleOutput"},
}

// resetAction puts a server into any state, for administrators.
const resetAction = "os-resetState"

// actOnServer implements POST /servers/{id}/action.
func actOnServer(c *Cloud, t *turn) (reply, error) {
	s, err := c.mapped(t)
	if err != nil {
		return reply{}, err
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(t.body, &body); err != nil || len(body) != 1 {
		return reply{}, refuse(http.StatusBadRequest, "Malformed request body")
	}
	name := keysInOrder(t.body)[0]
	a, known := actions[name]
	switch {
	case !known:
		return reply{}, refuse(http.StatusBadRequest, "There is no such action: %s", name)
	case name == consoleAction:
		return showConsole(s, body[name])
	case name == resetAction:
		err = reset(t, s, body[name])
	case name == rebootAction && !isReboot(body[name]):
		var kind struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(body[name], &kind) // what has no kind has an unknown one
		return reply{}, invalid("type", kind.Type, "'"+kind.Type+"' is not one of ['HARD', 'Hard', 'hard', 'SOFT', 'Soft', 'soft']")
	case a.locks || a.unlocks:
		s.Locked = a.locks
	case a.admin != "" && !t.admin():
		err = refuse(http.StatusForbidden, "Policy doesn't allow os_compute_api:os-%s to be performed.", a.admin)
	default:
		err = c.change(t, s, a, name, body[name])
	}
	if err != nil {
		return reply{}, err
	}
	s.Updated = testcloud.Now()
	c.touch(s)
	t.Changed(s.ID)
	if a.to == vmRescued {
		return ok(object{"adminPass": newAudit()[:12]})
	}
	return with(http.StatusAccepted, nil)
}

// move puts a server into another state.
func (a action) move(s *server) error {
	switch {
	case s.Locked:
		return refuse(http.StatusConflict, "Instance %s is locked", s.ID)
	case !slices.Contains(a.from, s.VMState):
		return refuse(http.StatusConflict, "Cannot '%s' instance %s while it is in vm_state %s", a.method, s.ID, s.VMState)
	case s.TaskState != "":
		return refuse(http.StatusConflict, "Cannot '%s' instance %s while it is in task_state %s", a.method, s.ID, s.TaskState)
	}
	s.VMState, s.Power, s.Fault = a.to, a.power, nil
	return nil
}

// reset sets the state to active or, unless that is asked for, to error; no fault says why.
func reset(t *turn, s *server, raw json.RawMessage) error {
	if !t.admin() {
		return refuse(http.StatusForbidden, "Policy doesn't allow os_compute_api:os-admin-actions:reset_state to be performed.")
	}
	var wanted struct {
		State string `json:"state"`
	}
	if err := json.Unmarshal(raw, &wanted); err != nil {
		return refuse(http.StatusBadRequest, "Malformed request body")
	}
	s.VMState, s.TaskState, s.Fault = vmError, "", nil
	if wanted.State == vmActive {
		s.VMState = vmActive
	}
	return nil
}

// rebootAction restarts a server, in one of two ways.
const rebootAction = "reboot"

func isReboot(raw json.RawMessage) bool {
	var wanted struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(raw, &wanted) == nil && slices.Contains([]string{"HARD", "Hard", "hard", "SOFT", "Soft", "soft"}, wanted.Type)
}
