package apicases_test

import (
	"net/http"
)

func stateCases() []apiCase {
	return []apiCase{
		{name: "state: no host has room", do: noHost},
		{name: "state: stopped and started", do: stopAndStart},
		{name: "state: paused, suspended, rescued, shelved", do: otherStates},
		{name: "state: locked", do: locked},
		{name: "state: set by an administrator", do: resetState},
		{name: "state: actions that cannot be", do: refusedActions},
		{name: "state: restarted", do: restart},
		{name: "state: the console", do: console},
	}
}

// ofState is what tells the state of a server; PAUSED and SUSPENDED have the power state of Nova's
// fake driver.
var ofState = only("server.status", "server.OS-EXT-STS:vm_state", "server.OS-EXT-STS:task_state", "server.fault", "server.*")

func noHost(r *run) {
	port := r.port("port", nil, quiet())
	tag := r.unique("t")
	id := r.boot("server", r.vm("vm", object{"flavorRef": r.flavor("m1.huge"), "networks": list{object{"port": port}}, "tags": list{tag}}), quiet())
	r.settle(id, "ERROR")
	r.call(http.MethodGet, compute, "/servers/"+id, nil)
	r.note("a list tells the fault as well")
	r.call(http.MethodGet, compute, "/servers/detail"+query("tags", tag), nil, only("servers.status", "servers.fault"))
	r.note("its port is free, before the server is deleted")
	r.call(http.MethodGet, network, "/ports/"+port, nil, only("port.status", "port.device_id", "port.device_owner"))
	r.call(http.MethodDelete, compute, "/servers/"+id, nil)
	r.gone(id)
	r.call(http.MethodGet, network, "/ports/"+port, nil, only("port.status", "port.device_id", "port.device_owner"))
}

// act orders an action, waits for the status and shows it.
func (r *run) act(id, action string, argument any, status string) {
	r.Helper()
	r.call(http.MethodPost, compute, "/servers/"+id+"/action", object{action: argument})
	r.settle(id, status)
	r.call(http.MethodGet, compute, "/servers/"+id, nil, ofState)
}

func stopAndStart(r *run) {
	id := r.running("server", nil)
	r.act(id, "os-stop", nil, "SHUTOFF")
	r.act(id, "os-start", nil, "ACTIVE")
}

func otherStates(r *run) {
	id := r.running("server", nil)
	r.act(id, "pause", nil, "PAUSED")
	r.act(id, "unpause", nil, "ACTIVE")
	r.act(id, "suspend", nil, "SUSPENDED")
	r.act(id, "resume", nil, "ACTIVE")
	r.act(id, "rescue", object{}, "RESCUE")
	r.act(id, "unrescue", nil, "ACTIVE")
	r.act(id, "shelve", nil, "SHELVED_OFFLOADED")
	r.act(id, "unshelve", nil, "ACTIVE")
}

func restart(r *run) {
	id := r.running("server", nil)
	r.act(id, "reboot", object{"type": "SOFT"}, "ACTIVE")
	r.act(id, "reboot", object{"type": "HARD"}, "ACTIVE")
}

func locked(r *run) {
	id := r.running("server", nil)
	r.call(http.MethodPost, compute, "/servers/"+id+"/action", object{"lock": nil})
	r.call(http.MethodGet, compute, "/servers/"+id, nil, only("server.locked"))
	r.call(http.MethodPost, compute, "/servers/"+id+"/action", object{"os-stop": nil})
	r.call(http.MethodDelete, compute, "/servers/"+id, nil)
	r.call(http.MethodPost, compute, "/servers/"+id+"/action", object{"unlock": nil})
	r.call(http.MethodDelete, compute, "/servers/"+id, nil)
}

func resetState(r *run) {
	id := r.running("server", nil)
	reset := object{"os-resetState": object{"state": "error"}}
	r.call(http.MethodPost, compute, "/servers/"+id+"/action", reset)
	r.call(http.MethodPost, compute, "/servers/"+id+"/action", reset, as(admin))
	r.settle(id, "ERROR")
	r.call(http.MethodGet, compute, "/servers/"+id, nil, ofState)
	r.call(http.MethodDelete, compute, "/servers/"+id+"/metadata/a", nil)
}

func refusedActions(r *run) {
	id := r.running("server", nil)
	for _, action := range []object{{"os-start": nil}, {"unpause": nil}, {"resume": nil}, {"unrescue": nil}, {"unshelve": nil}, {"nonsense": nil}} {
		r.call(http.MethodPost, compute, "/servers/"+id+"/action", action)
	}
	r.call(http.MethodPost, compute, "/servers/"+id+"/action", object{"reboot": object{"type": "nonsense"}})
}

func console(r *run) {
	id := r.running("server", nil)
	for _, length := range []any{nil, 2, "1", 50} {
		argument := object{}
		if length != nil {
			argument["length"] = length
		}
		r.call(http.MethodPost, compute, "/servers/"+id+"/action", object{"os-getConsoleOutput": argument})
	}
	r.note("of a server that was never on a host")
	lost := r.boot("lost", r.vm("huge", object{"flavorRef": r.flavor("m1.huge")}), quiet())
	r.settle(lost, "ERROR")
	r.call(http.MethodPost, compute, "/servers/"+lost+"/action", object{"os-getConsoleOutput": object{"length": 2}})
}
