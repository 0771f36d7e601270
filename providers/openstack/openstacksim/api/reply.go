package api

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// Reply is what a call is answered with.
type Reply struct {
	Status int
	Header http.Header
	// Body is written as JSON; nil: no body.
	Body any
	// Raw is written as it is, with the header alone, if there is one.
	Raw []byte
	// Words are those of an error, for the ledger.
	Words string
	// Page is sent as HTML instead of body to those who do not ask for JSON.
	Page string
}

// Object is one of JSON.
type Object = map[string]any

// OK answers with a body.
func OK(body any) (Reply, error) { return Reply{Status: http.StatusOK, Body: body}, nil }

// WithStatus answers with another status than 200.
func WithStatus(status int, body any) (Reply, error) { return Reply{Status: status, Body: body}, nil }

// Set sets a header of the answer.
func (r *Reply) Set(name, value string) {
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(name, value)
}

// Write sends the answer.
func (r *Reply) Write(w http.ResponseWriter, request *http.Request) {
	maps.Copy(w.Header(), r.Header)
	if r.Raw != nil {
		w.WriteHeader(r.Status)
		_, _ = w.Write(r.Raw) // a caller that has gone is noted by its context
		return
	}
	w.Header().Set("X-Openstack-Request-Id", "req-"+state.NewID())
	if r.Body == nil {
		w.WriteHeader(r.Status)
		return
	}
	if r.Page != "" && !strings.Contains(request.Header.Get("Accept"), "application/json") {
		r.writePage(w, request)
		return
	}
	raw, err := json.Marshal(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header()["Content-Type"] = cmpHeader(r.Header["Content-Type"], "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(r.Status)
	if request.Method != http.MethodHead {
		_, _ = w.Write(raw) // a caller that has gone is noted by its context
	}
}

// writePage sends an error to one who does not ask for JSON: as a page, or as text to one who does
// not ask for pages either.
func (r *Reply) writePage(w http.ResponseWriter, request *http.Request) {
	kind, page := "text/html", r.Page
	if accept := request.Header.Get("Accept"); !strings.Contains(accept, "text/html") && !strings.Contains(accept, "*/*") {
		kind, page = "text/plain", fmt.Sprintf("%d %s\n\n%s\n\n\n   ", r.Status, http.StatusText(r.Status), r.Words)
	}
	w.Header().Set("Content-Type", kind+"; charset=UTF-8")
	w.WriteHeader(r.Status)
	_, _ = io.WriteString(w, page) // a caller that has gone is noted by its context
}

// cmpHeader is the header that is given, or the usual one.
func cmpHeader(given []string, usual string) []string {
	if len(given) > 0 {
		return given
	}
	return []string{usual}
}

// GRPCCode is what the ledger has for a status.
func GRPCCode(status int) codes.Code {
	switch status {
	case 0:
		return codes.Unavailable
	case http.StatusBadRequest, http.StatusNotAcceptable:
		return codes.InvalidArgument
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound:
		return codes.NotFound
	case http.StatusConflict:
		return codes.FailedPrecondition
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case http.StatusServiceUnavailable, http.StatusBadGateway:
		return codes.Unavailable
	}
	if status >= http.StatusInternalServerError {
		return codes.Internal
	}
	return codes.OK
}
