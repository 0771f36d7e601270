package openstacksim

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/volume"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// maxBody is the most bytes of a request that the cloud reads.
const maxBody = 4 << 20

// The operations that the driver's creates and deletes are made of.
var (
	createOperations = []string{api.CreatePort, api.CreateServer}
	deleteOperations = []string{api.DeleteServer, api.DeletePort}
)

// operations are the names that calls of these routes can have.
func operations(routes []api.Route) []string {
	var names []string
	for _, rt := range routes {
		names = append(append(names, rt.Operation), rt.Actions...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// driverOperations are those that drivers of machines make.
func driverOperations(routes []api.Route) []string {
	var names []string
	for _, rt := range routes {
		if rt.Driver && !slices.Contains(names, rt.Operation) {
			names = append(names, rt.Operation)
		}
	}
	return names
}

// serve serves all kinds of calls.
func (c *Cloud) serve() {
	for _, rt := range c.routes {
		if c.options.WithoutCinder && rt.Service == api.Cinder {
			continue
		}
		c.mux.HandleFunc(rt.Method+" "+rt.Pattern, c.handle(&rt))
	}
	if c.upstream != nil {
		c.mux.HandleFunc("/", c.upstream.relay)
		return
	}
	unknown := func(s api.Service, outside bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			answer := s.Refused(&api.Refusal{Status: http.StatusNotFound, Kind: "HTTPNotFound", Message: "The resource could not be found.", Outside: outside}, "")
			answer.Write(w, r)
		}
	}
	c.mux.HandleFunc("/", unknown(api.Nova, true))
	c.mux.HandleFunc("/networking/v2.0/", unknown(api.Neutron, false))
}

// handle serves one kind of call: it notes it, lets faults strike, and lets the call take effect
// once. Only the end of the cloud keeps a call from its effect; that the caller goes does not.
func (c *Cloud) handle(rt *api.Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		call := c.receive(rt, r, body)
		var answer api.Reply
		err = c.front.Run(r.Context(), call.Turn, call.Injected, func() error {
			answer, err = c.takeEffect(call)
			return err
		})
		var refused *api.Refusal
		switch {
		case errors.As(err, &refused):
			answer = rt.Service.Refused(refused, call.Base())
		case err != nil:
			c.front.End(r.Context(), call.Turn, testcloud.Answer{Code: api.GRPCCode(0), Err: err})
			panic(http.ErrAbortHandler)
		}
		if call.Spoken != "" {
			answer.Speak(rt.Service, call.Spoken)
		}
		c.front.End(r.Context(), call.Turn, testcloud.Answer{Code: api.GRPCCode(answer.Status), Message: answer.Words})
		answer.Write(w, r)
	}
}

// receive notes a new call and chooses its faults.
func (c *Cloud) receive(rt *api.Route, r *http.Request, body []byte) *api.Call {
	c.front.Lock()
	defer c.front.Unlock()
	call := &api.Call{Route: rt, Request: r, Query: r.URL.Query(), Body: body}
	whose, resource := subjectsOf(c.store.Owners, call)
	operation, boots := rt.Named(body)
	call.Turn = c.front.Begin(testcloud.Arrival{
		Operation: operation, Clusters: whose.clusters, Machines: whose.machines, Resource: resource, CreatesVM: boots, Creates: rt.Creates,
		Request: call.Fingerprint(), Token: call.Token(),
	})
	return call
}

func (c *Cloud) takeEffect(call *api.Call) (answer api.Reply, err error) {
	if c.upstream != nil {
		return c.upstream.takeEffect(call)
	}
	err = c.front.TakeEffect(call.Turn, func() error {
		if err := c.admit(call); err != nil {
			return err
		}
		answer, err = call.Route.Do(call)
		return err
	})
	return answer, err
}

// admit finds out who calls, and which version the call speaks. Open calls are for everybody:
// Keystone's check for themselves.
func (c *Cloud) admit(call *api.Call) error {
	if call.Route.Open {
		switch {
		case strings.HasPrefix(call.Route.Pattern, "/compute/v2.1"):
			call.Version, call.Spoken = api.LeastMicroversion, api.LeastMicroversion.String()
		case call.Route.Service == api.Cinder:
			call.Spoken = volume.LeastVersion
		}
		return nil
	}
	if err := c.keystone.Admit(call); err != nil {
		return err
	}
	switch call.Route.Service {
	case api.Nova:
		return c.nova.ReadVersion(call)
	case api.Cinder:
		return volume.ReadVersion(call)
	}
	return nil
}
