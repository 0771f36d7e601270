package api

import (
	"net/http"
)

// Service is one of the services; each says errors in its own way.
type Service string

// The services, by their types in the catalog.
const (
	Keystone Service = "identity"
	Nova     Service = "compute"
	Neutron  Service = "network"
	Glance   Service = "image"
	Cinder   Service = "volumev3"
)

// The operations on which faults of their own strike, or that the driver's creates and deletes are
// made of.
const (
	CreateServer = "CreateServer"
	DeleteServer = "DeleteServer"
	CreatePort   = "CreatePort"
	DeletePort   = "DeletePort"
)

// Handler lets a call take effect, under the cloud's lock. Its error is a Refusal.
type Handler func(*Call) (Reply, error)

// Bind makes Handlers of functions that take their service as well.
func Bind[S any](service S) func(func(S, *Call) (Reply, error)) Handler {
	return func(do func(S, *Call) (Reply, error)) Handler {
		return func(call *Call) (Reply, error) { return do(service, call) }
	}
}

// Route is one kind of call.
type Route struct {
	Service   Service
	Method    string
	Pattern   string
	Operation string
	Do        Handler
	// Resource is what the call is about, in the terms of Neutron's quotas and policies.
	Resource string
	// Creates says that the call makes something.
	Creates bool
	// Open says that the call needs no token.
	Open bool
	// Driver says that drivers of machines make such calls.
	Driver bool
	// Boots says that a server boots for the call: what strikes servers that boot strikes it.
	Boots bool
	// Action, where it is set, reads from a body which operation the call is, and whether a server
	// boots for it, here on another host. An empty operation is Operation. Actions are all that it
	// can return.
	Action  func(body []byte) (operation string, boots bool)
	Actions []string
}

// RoutesOf gives routes their service.
func RoutesOf(service Service, routes []Route) []Route {
	for n := range routes {
		routes[n].Service = service
	}
	return routes
}

// Named is the operation of a call with that body, and whether a server boots for it.
func (rt *Route) Named(body []byte) (operation string, boots bool) {
	if rt.Action != nil {
		if operation, boots = rt.Action(body); operation != "" {
			return operation, boots
		}
	}
	return rt.Operation, rt.Boots
}

// policy is the rule that allows the call.
func (rt *Route) policy() string {
	if rt.Service == Neutron {
		return map[string]string{http.MethodPost: "create_", http.MethodPut: "update_", http.MethodDelete: "delete_"}[rt.Method] + rt.Resource
	}
	return "os_compute_api:servers:" + rt.Operation
}
