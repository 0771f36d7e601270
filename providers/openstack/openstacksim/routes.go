package openstacksim

import (
	"encoding/json"
	"net/http"
	"slices"
)

// The operations on which faults of their own strike, or that the driver's creates and deletes are
// made of.
const (
	opCreateServer = "CreateServer"
	opDeleteServer = "DeleteServer"
	opCreatePort   = "CreatePort"
	opDeletePort   = "DeletePort"
	opActOnServer  = "ActOnServer"
)

var (
	createOperations = []string{opCreatePort, opCreateServer}
	deleteOperations = []string{opDeleteServer, opDeletePort}
)

// route is one kind of call.
type route struct {
	service   service
	method    string
	pattern   string
	operation string
	do        func(*Cloud, *turn) (reply, error)
	// resource is what the call is about, in the terms of Neutron's quotas and policies.
	resource string
	// creates says that the call makes something.
	creates bool
	// open says that the call needs no token.
	open bool
	// driver says that drivers of machines make such calls.
	driver bool
}

// named is the operation of a call with that body.
func (rt *route) named(body []byte) string {
	if rt.operation != opActOnServer {
		return rt.operation
	}
	var action map[string]json.RawMessage
	_ = json.Unmarshal(body, &action) // what is no action has no name
	for name := range action {
		if a, known := actions[name]; known {
			return a.operation
		}
	}
	return rt.operation
}

// policy is the rule that allows the call.
func (rt *route) policy() string {
	if rt.service == neutron {
		return map[string]string{http.MethodPost: "create_", http.MethodPut: "update_", http.MethodDelete: "delete_"}[rt.method] + rt.resource
	}
	return "os_compute_api:servers:" + rt.operation
}

// routes serves all kinds of calls.
func (c *Cloud) routes() {
	for _, rt := range allRoutes() {
		if c.options.WithoutCinder && rt.service == cinder {
			continue
		}
		c.mux.HandleFunc(rt.method+" "+rt.pattern, c.handle(&rt))
	}
	if c.upstream != nil {
		c.mux.HandleFunc("/", c.upstream.relay)
		return
	}
	unknown := func(s service, outside bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			answer := s.refused(&refusal{status: http.StatusNotFound, kind: "HTTPNotFound", message: "The resource could not be found.", outside: outside}, "")
			answer.write(w, r)
		}
	}
	c.mux.HandleFunc("/", unknown(nova, true))
	c.mux.HandleFunc("/networking/v2.0/", unknown(neutron, false))
}

func allRoutes() []route {
	return slices.Concat(keystoneRoutes(), novaRoutes(), neutronRoutes(), glanceRoutes(), cinderRoutes())
}

func keystoneRoutes() []route {
	return []route{
		{service: keystone, method: "GET", pattern: "/{$}", operation: "ListVersions", do: listKeystoneVersions, open: true},
		{service: keystone, method: "GET", pattern: "/v3", operation: "ListVersions", do: showKeystoneVersion, open: true},
		{service: keystone, method: "GET", pattern: "/v3/{$}", operation: "ListVersions", do: showKeystoneVersion, open: true},
		{service: keystone, method: "POST", pattern: "/v3/auth/tokens", operation: "Authenticate", do: login, open: true, driver: true},
		{service: keystone, method: "GET", pattern: "/v3/auth/tokens", operation: "ShowToken", do: showToken},
		{service: keystone, method: "DELETE", pattern: "/v3/auth/tokens", operation: "RevokeToken", do: revokeToken},
		{service: keystone, method: "GET", pattern: "/v3/auth/projects", operation: "ListProjects", do: listProjects},
		{service: keystone, method: "GET", pattern: "/v3/users/{user}/application_credentials", operation: "ListCredentials", do: listCredentials},
		{service: keystone, method: "POST", pattern: "/v3/users/{user}/application_credentials", operation: "CreateCredential", do: createCredential},
		{service: keystone, method: "DELETE", pattern: "/v3/users/{user}/application_credentials/{credential}", operation: "DeleteCredential", do: deleteCredential},
		{service: keystone, method: "GET", pattern: "/v3/auth/catalog", operation: "ShowCatalog", do: showCatalog},
	}
}

// operationNames are the names that calls can have.
func operationNames() []string {
	var names []string
	for _, rt := range allRoutes() {
		names = append(names, rt.operation)
	}
	for _, a := range actions {
		names = append(names, a.operation)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func isOperation(name string) bool { return slices.Contains(operationNames(), name) }

// driverOperations are those that drivers of machines make.
func driverOperations() []string {
	var names []string
	for _, rt := range allRoutes() {
		if rt.driver && !slices.Contains(names, rt.operation) {
			names = append(names, rt.operation)
		}
	}
	return names
}
