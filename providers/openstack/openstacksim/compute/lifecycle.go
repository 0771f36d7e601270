package compute

import (
	"net/http"
	"strings"
	"time"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// hostCPUs is how many virtual CPUs fit on a host: a flavor with more finds none.
const hostCPUs = 1024

// noValidHost is what Nova's scheduler says of a flavor that fits nowhere, blank included.
const noValidHost = "No valid host was found. "

// crowded says whether no host has room for the server. Its group forbids servers to share hosts,
// and each host of its zone has as many as it may.
func crowded(nova *Nova, s *Server) bool {
	g := nova.ServerGroups.ByID[s.Group]
	if g == nil || g.Policy != "anti-affinity" {
		return false
	}
	room := nova.options.HostsPerZone
	if most, isNumber := g.Rules["max_server_per_host"].(float64); isNumber {
		room *= int(most)
	}
	for _, other := range nova.Servers.Alive.Ordered {
		if other.Group == g.ID && other.Zone == s.Zone && !other.Hostless {
			room--
		}
	}
	return room <= 0
}

// plan sets what becomes of a new server.
func plan(nova *Nova, call *api.Call, s *Server) {
	switch {
	case s.Flavor.VCPUs > hostCPUs:
		s.Hostless, s.BootFault = true, noValidHost
	case crowded(nova, s):
		s.Hostless, s.BootFault = true, noValidHost+"There are not enough hosts available."
	}
	for _, f := range call.Struck {
		switch f.GetEffect() {
		case backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS:
			s.BootFault = bootsForever
		case backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS:
			s.BootFault = "Build of instance " + s.ID + " aborted: Failed to provision instance"
			if words := f.GetError().GetMessage(); words != "" {
				s.BootFault = words
			}
		}
	}
}

// launch begins to build a new server.
func (nova *Nova) launch(s *Server) {
	s.VMState, s.TaskState = VMBuilding, taskScheduling
	if nova.options.BindLatency > 0 {
		nova.schedule(s, nova.options.BindLatency)
		return
	}
	nova.build(s)
}

// build gives the server its ports, and lets it boot.
func (nova *Nova) build(s *Server) {
	s.Due = time.Time{}
	if s.Hostless {
		nova.abort(s, s.BootFault)
		return
	}
	if err := nova.bind(s); err != nil {
		nova.abort(s, s.unconnected())
		nova.releasePorts(s, true)
		return
	}
	s.TaskState = taskSpawning
	nova.schedule(s, nova.options.BootLatency-nova.options.BindLatency)
}

// schedule sets when the server's state changes by itself. Without a delay it changes now.
func (nova *Nova) schedule(s *Server, delay time.Duration) {
	if delay <= 0 {
		nova.Advance(s)
		return
	}
	s.Due = testcloud.Now().Add(delay)
	nova.arm(s)
}

// Advance takes a server the next step in its life: what happens by itself when it is Due.
func (nova *Nova) Advance(s *Server) {
	s.Due = time.Time{}
	switch {
	case s.deleting() && len(s.Interfaces) > 0 && nova.options.DeleteLatency > 0:
		// The ports are free before the server is gone.
		nova.releasePorts(s, false)
		s.Interfaces = nil
		nova.schedule(s, nova.options.DeleteLatency/2)
	case s.deleting():
		nova.bury(s)
	case s.VMState == VMBuilding && s.TaskState == taskScheduling:
		nova.build(s)
	case s.VMState == VMBuilding && s.BootFault == bootsForever:
	case s.VMState == VMBuilding && s.BootFault != "":
		nova.abort(s, s.BootFault)
	case s.VMState == VMBuilding:
		s.VMState, s.TaskState, s.Power, s.Launched = VMActive, "", powerRunning, testcloud.Now()
		nova.plug(s)
	}
	s.Updated = testcloud.Now()
}

// fail puts the server in ERROR.
func (nova *Nova) fail(s *Server, message string) {
	s.VMState, s.TaskState, s.Power = VMError, "", powerNone
	s.Due, s.Updated = time.Time{}, testcloud.Now()
	s.Fault = &Fault{Code: http.StatusInternalServerError, Message: message, Created: s.Updated}
	if strings.HasPrefix(message, "Quota exceeded") {
		// As where several servers were asked for at once, and Nova sees only then that they are
		// too many.
		s.Fault.Code = http.StatusRequestEntityTooLarge
	}
}

// unconnected is what Nova says when a server does not get its ports.
func (s *Server) unconnected() string {
	return "Build of instance " + s.ID + " aborted: Failed to allocate the network(s), not rescheduling."
}

// abort ends the building of a server in ERROR, and lets its ports go.
func (nova *Nova) abort(s *Server, message string) {
	s.Bound = false
	nova.fail(s, message)
	nova.releasePorts(s, false)
}

// releasePorts has the server's ports forget it, and with force also those that others have. Those
// that Nova made go.
func (nova *Nova) releasePorts(s *Server, force bool) {
	for _, i := range s.Interfaces {
		if p := nova.neutron.Ports.ByID[i.Port]; p != nil && (p.DeviceID == s.ID || force) {
			nova.unbind(p, i.Made)
		}
	}
}

// arm lets the state change when it is due. The runtime keeps timers in a heap: a thousand of them
// cost no goroutine.
func (nova *Nova) arm(s *Server) {
	due := s.Due
	time.AfterFunc(time.Until(due), func() {
		nova.store.Front.Lock()
		defer nova.store.Front.Unlock()
		if nova.store.Front.IsClosed() || !s.Due.Equal(due) || s.Gone() {
			return
		}
		nova.Advance(s)
		nova.Servers.touch(s)
		nova.store.Front.Report(nova.store.Journal.Flush())
	})
}

// remove begins to delete a server; one that is being deleted already goes on.
func (nova *Nova) remove(s *Server) {
	if s.deleting() {
		return
	}
	s.TaskState, s.Updated = taskDeleting, testcloud.Now()
	nova.schedule(s, nova.options.DeleteLatency/2)
}

// bury takes a server away, with the ports that Nova made for it and the volumes that end with it.
// Ports that were there before stay.
func (nova *Nova) bury(s *Server) {
	at := testcloud.Now()
	nova.releasePorts(s, false)
	for _, a := range s.Disks {
		release(nova, a)
	}
	nova.Servers.remove(s)
	s.VMState, s.TaskState, s.Power, s.UserData = VMDeleted, "", powerNone, ""
	s.Metadata, s.Tags, s.Interfaces, s.Disks = nil, nil, nil, nil
	s.Terminated, s.Updated, s.Due = at, at, time.Time{}
	nova.Servers.remember(s)
}
