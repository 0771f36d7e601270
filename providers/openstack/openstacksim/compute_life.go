package openstacksim

import (
	"net/http"
	"strings"
	"time"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// hostCPUs is how many virtual CPUs fit on a host: a flavor with more finds none.
const hostCPUs = 1024

// noValidHost is what Nova's scheduler says of a flavor that fits nowhere, blank included.
const noValidHost = "No valid host was found. "

// crowded says whether no host has room for the server. Its group forbids servers to share hosts,
// and each host of its zone has as many as it may.
func (c *Cloud) crowded(s *server) bool {
	g := c.serverGroups.byID[s.Group]
	if g == nil || g.Policy != "anti-affinity" {
		return false
	}
	room := c.options.HostsPerZone
	if most, isNumber := g.Rules["max_server_per_host"].(float64); isNumber {
		room *= int(most)
	}
	for _, other := range c.alive.ordered {
		if other.Group == g.ID && other.Zone == s.Zone && !other.Hostless {
			room--
		}
	}
	return room <= 0
}

// plan sets what becomes of a new server.
func (c *Cloud) plan(t *turn, s *server) {
	switch {
	case s.Flavor.VCPUs > hostCPUs:
		s.Hostless, s.BootFault = true, noValidHost
	case c.crowded(s):
		s.Hostless, s.BootFault = true, noValidHost+"There are not enough hosts available."
	}
	for _, f := range t.Struck {
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
func (c *Cloud) launch(s *server) {
	s.VMState, s.TaskState = vmBuilding, taskScheduling
	if c.options.BindLatency > 0 {
		c.schedule(s, c.options.BindLatency)
		return
	}
	c.build(s)
}

// build gives the server its ports, and lets it boot.
func (c *Cloud) build(s *server) {
	s.Due = time.Time{}
	if s.Hostless {
		c.abort(s, s.BootFault)
		return
	}
	if err := c.bind(s); err != nil {
		c.abort(s, s.unconnected())
		c.releasePorts(s, true)
		return
	}
	s.TaskState = taskSpawning
	c.schedule(s, c.options.BootLatency-c.options.BindLatency)
}

// schedule sets when the server's state changes by itself. Without a delay it changes now.
func (c *Cloud) schedule(s *server, delay time.Duration) {
	if delay <= 0 {
		c.next(s)
		return
	}
	s.Due = testcloud.Now().Add(delay)
	c.arm(s)
}

// next is what happens by itself.
func (c *Cloud) next(s *server) {
	s.Due = time.Time{}
	switch {
	case s.deleting() && len(s.Interfaces) > 0 && c.options.DeleteLatency > 0:
		// The ports are free before the server is gone.
		c.releasePorts(s, false)
		s.Interfaces = nil
		c.schedule(s, c.options.DeleteLatency/2)
	case s.deleting():
		c.bury(s)
	case s.VMState == vmBuilding && s.TaskState == taskScheduling:
		c.build(s)
	case s.VMState == vmBuilding && s.BootFault == bootsForever:
	case s.VMState == vmBuilding && s.BootFault != "":
		c.abort(s, s.BootFault)
	case s.VMState == vmBuilding:
		s.VMState, s.TaskState, s.Power, s.Launched = vmActive, "", powerRunning, testcloud.Now()
		c.plug(s)
	}
	s.Updated = testcloud.Now()
}

// fail puts the server in ERROR.
func (c *Cloud) fail(s *server, message string) {
	s.VMState, s.TaskState, s.Power = vmError, "", powerNone
	s.Due, s.Updated = time.Time{}, testcloud.Now()
	s.Fault = &serverFault{Code: http.StatusInternalServerError, Message: message, Created: s.Updated}
	if strings.HasPrefix(message, "Quota exceeded") {
		// As where several servers were asked for at once, and Nova sees only then that they are
		// too many.
		s.Fault.Code = http.StatusRequestEntityTooLarge
	}
}

// unconnected is what Nova says when a server does not get its ports.
func (s *server) unconnected() string {
	return "Build of instance " + s.ID + " aborted: Failed to allocate the network(s), not rescheduling."
}

// abort ends the building of a server in ERROR, and lets its ports go.
func (c *Cloud) abort(s *server, message string) {
	s.Bound = false
	c.fail(s, message)
	c.releasePorts(s, false)
}

// releasePorts has the server's ports forget it, and with force also those that others have. Those
// that Nova made go.
func (c *Cloud) releasePorts(s *server, force bool) {
	for _, i := range s.Interfaces {
		if p := c.ports.byID[i.Port]; p != nil && (p.DeviceID == s.ID || force) {
			c.unbind(p, i.Made)
		}
	}
}

// arm lets the state change when it is due. The runtime keeps timers in a heap: a thousand of them
// cost no goroutine.
func (c *Cloud) arm(s *server) {
	due := s.Due
	time.AfterFunc(time.Until(due), func() {
		c.front.Lock()
		defer c.front.Unlock()
		if c.front.IsClosed() || !s.Due.Equal(due) || s.gone() {
			return
		}
		c.next(s)
		c.touch(s)
		c.front.Report(c.flush())
	})
}

// remove begins to delete a server; one that is being deleted already goes on.
func (c *Cloud) remove(s *server) {
	if s.deleting() {
		return
	}
	s.TaskState, s.Updated = taskDeleting, testcloud.Now()
	c.schedule(s, c.options.DeleteLatency/2)
}

// bury takes a server away, with the ports that Nova made for it and the volumes that end with it.
// Ports that were there before stay.
func (c *Cloud) bury(s *server) {
	at := testcloud.Now()
	c.releasePorts(s, false)
	for _, a := range s.Disks {
		c.release(a)
	}
	c.alive.remove(s.ID)
	c.countAlive(s, -1)
	s.VMState, s.TaskState, s.Power, s.userData = vmDeleted, "", powerNone, ""
	s.Metadata, s.Tags, s.Interfaces, s.Disks = nil, nil, nil, nil
	s.Terminated, s.Updated, s.Due = at, at, time.Time{}
	c.inter(s)
}
