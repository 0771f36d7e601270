package compute

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
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
	"os-stop":  {operation: "StopServer", method: "stop", from: []string{VMActive, VMError}, to: VMStopped, power: powerOff},
	"os-start": {operation: "StartServer", method: "start", from: []string{VMStopped}, to: VMActive, power: powerRunning},
	"reboot":   {operation: "RebootServer", method: "reboot", from: []string{VMActive, VMStopped, VMError}, to: VMActive, power: powerRunning},
	"pause":    {operation: "PauseServer", method: "pause", from: []string{VMActive}, to: VMPaused, power: powerPaused},
	"unpause":  {operation: "UnpauseServer", method: "unpause", from: []string{VMPaused}, to: VMActive, power: powerRunning},
	"suspend":  {operation: "SuspendServer", method: "suspend", from: []string{VMActive}, to: VMSuspended, power: powerOff},
	"resume":   {operation: "ResumeServer", method: "resume", from: []string{VMSuspended}, to: VMActive, power: powerRunning},
	"rescue":   {operation: "RescueServer", method: "rescue", from: []string{VMActive, VMStopped, VMError}, to: VMRescued, power: powerOff},
	"unrescue": {operation: "UnrescueServer", method: "unrescue", from: []string{VMRescued}, to: VMActive, power: powerRunning},
	"shelve":   {operation: "ShelveServer", method: "shelve", from: []string{VMActive, VMStopped, VMPaused, VMSuspended}, to: VMShelved, power: powerOff},
	"unshelve": {operation: "UnshelveServer", method: "unshelve", from: []string{VMShelved}, to: VMActive, power: powerRunning},
	"resize":   {operation: "ResizeServer", method: "resize", from: []string{VMActive, VMStopped}, to: VMResized, power: powerRunning, moves: true},
	"migrate":  {operation: "MigrateServer", method: "migrate", from: []string{VMActive, VMStopped}, to: VMResized, power: powerRunning, moves: true, admin: "migrate_server:migrate"},
	"os-migrateLive": {
		operation: "LiveMigrateServer", method: "live_migrate", from: []string{VMActive, VMPaused}, to: VMActive, power: powerRunning, moves: true,
		admin: "migrate_server:migrate_live",
	},
	"confirmResize": {operation: "ConfirmResize", method: "confirm_resize", from: []string{VMResized}, to: VMActive, power: powerRunning},
	"revertResize":  {operation: "RevertResize", method: "revert_resize", from: []string{VMResized}, to: VMActive, power: powerRunning},
	"lock":          {operation: "LockServer", locks: true},
	"unlock":        {operation: "UnlockServer", unlocks: true},
	resetAction:     {operation: "ResetServer"},
	consoleAction:   {operation: "GetConsoleOutput"},
}

// resetAction puts a server into any state, for administrators.
const resetAction = "os-resetState"

// readAction reads the name of an action from its body: see api.Route.
func readAction(body []byte) (operation string, boots bool) {
	var wanted map[string]json.RawMessage
	_ = json.Unmarshal(body, &wanted) // what is no action has no name
	for name := range wanted {
		if a, known := actions[name]; known {
			return a.operation, a.moves
		}
	}
	return "", false
}

// actionNames are the operations that actions are.
func actionNames() []string {
	var names []string
	for _, a := range actions {
		names = append(names, a.operation)
	}
	return names
}

// actOnServer implements POST /servers/{id}/action.
func actOnServer(nova *Nova, call *api.Call) (api.Reply, error) {
	s, err := findMapped(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(call.Body, &body); err != nil || len(body) != 1 {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "Malformed request body")
	}
	name := api.KeysInOrder(call.Body)[0]
	a, known := actions[name]
	switch {
	case !known:
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "There is no such action: %s", name)
	case name == consoleAction:
		return showConsole(s, body[name])
	case name == resetAction:
		err = reset(call, s, body[name])
	case name == rebootAction && !isReboot(body[name]):
		var kind struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(body[name], &kind) // what has no kind has an unknown one
		return api.Reply{}, api.Invalid("type", kind.Type, "'"+kind.Type+"' is not one of ['HARD', 'Hard', 'hard', 'SOFT', 'Soft', 'soft']")
	case a.locks || a.unlocks:
		s.Locked = a.locks
	case a.admin != "" && !call.Admin():
		err = api.Refuse(http.StatusForbidden, "Policy doesn't allow os_compute_api:os-%s to be performed.", a.admin)
	default:
		err = nova.change(call, s, a, name, body[name])
	}
	if err != nil {
		return api.Reply{}, err
	}
	s.Updated = testcloud.Now()
	nova.Servers.touch(s)
	call.Changed(s.ID)
	if a.to == VMRescued {
		return api.OK(api.Object{"adminPass": newPassword()})
	}
	return api.WithStatus(http.StatusAccepted, nil)
}

// move puts a server into another state.
func (a action) move(s *Server) error {
	switch {
	case s.Locked:
		return api.Refuse(http.StatusConflict, "Instance %s is locked", s.ID)
	case !slices.Contains(a.from, s.VMState):
		return api.Refuse(http.StatusConflict, "Cannot '%s' instance %s while it is in vm_state %s", a.method, s.ID, s.VMState)
	case s.TaskState != "":
		return api.Refuse(http.StatusConflict, "Cannot '%s' instance %s while it is in task_state %s", a.method, s.ID, s.TaskState)
	}
	s.VMState, s.Power, s.Fault = a.to, a.power, nil
	return nil
}

// reset sets the state to active or, unless that is asked for, to error; no fault says why.
func reset(call *api.Call, s *Server, raw json.RawMessage) error {
	if !call.Admin() {
		return api.Refuse(http.StatusForbidden, "Policy doesn't allow os_compute_api:os-admin-actions:reset_state to be performed.")
	}
	var wanted struct {
		State string `json:"state"`
	}
	if err := json.Unmarshal(raw, &wanted); err != nil {
		return api.Refuse(http.StatusBadRequest, "Malformed request body")
	}
	s.VMState, s.TaskState, s.Fault = VMError, "", nil
	if wanted.State == VMActive {
		s.VMState = VMActive
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
