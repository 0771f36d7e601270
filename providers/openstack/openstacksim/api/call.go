package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// Call is a call of a service under way.
type Call struct {
	*testcloud.Turn
	Route   *Route
	Request *http.Request
	Query   url.Values
	Body    []byte
	// Caller is who calls, once he has been admitted. Nobody is who makes a call that is open.
	Caller Caller
	// Version is what the call speaks of Nova's API.
	Version Microversion
	// Spoken is what the answer says of the version; empty: nothing.
	Spoken string
}

// Caller is who makes a call. With a token for no project it has the UserID alone.
type Caller struct {
	UserID, ProjectID string
	Admin             bool
}

// Token is what the caller shows to prove who he is.
func (call *Call) Token() string { return call.Request.Header.Get("X-Auth-Token") }

// Project is that of the caller, who has been admitted. A token for no project sees what no project
// has: nothing.
func (call *Call) Project() string { return call.Caller.ProjectID }

// Admin says whether the caller sees what belongs to other projects.
func (call *Call) Admin() bool { return call.Caller.Admin }

// Sees says whether the caller may see what belongs to a project.
func (call *Call) Sees(project string) bool { return project == call.Project() || call.Admin() }

// Path is a part of the request's path, by its name in the route.
func (call *Call) Path(name string) string { return call.Request.PathValue(name) }

// Base is where the caller reached the cloud.
func (call *Call) Base() string {
	if call.Request.TLS != nil {
		return "https://" + call.Request.Host
	}
	return "http://" + call.Request.Host
}

// Fingerprint is the same for a call that is repeated.
func (call *Call) Fingerprint() string {
	sum := sha256.Sum256(call.Body)
	return call.Request.Method + " " + call.Request.RequestURI + " " + hex.EncodeToString(sum[:8])
}
