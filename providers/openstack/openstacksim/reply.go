package openstacksim

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// reply is what a call is answered with.
type reply struct {
	status int
	header http.Header
	// body is written as JSON; nil: no body.
	body any
	// raw is written as it is, with the header alone, if there is one.
	raw []byte
	// words are those of an error, for the ledger.
	words string
	// page is sent as HTML instead of body to those who do not ask for JSON.
	page string
}

type object = map[string]any

func ok(body any) (reply, error) { return reply{status: http.StatusOK, body: body}, nil }

func with(status int, body any) (reply, error) { return reply{status: status, body: body}, nil }

func (r *reply) set(name, value string) {
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Set(name, value)
}

// write sends the answer.
func (r *reply) write(w http.ResponseWriter, request *http.Request) {
	maps.Copy(w.Header(), r.header)
	if r.raw != nil {
		w.WriteHeader(r.status)
		_, _ = w.Write(r.raw) // a caller that has gone is noted by its context
		return
	}
	w.Header().Set("X-Openstack-Request-Id", "req-"+newID())
	if r.body == nil {
		w.WriteHeader(r.status)
		return
	}
	if r.page != "" && !strings.Contains(request.Header.Get("Accept"), "application/json") {
		r.writePage(w, request)
		return
	}
	raw, err := json.Marshal(r.body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header()["Content-Type"] = cmpHeader(r.header["Content-Type"], "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(r.status)
	if request.Method != http.MethodHead {
		_, _ = w.Write(raw) // a caller that has gone is noted by its context
	}
}

// writePage sends an error to one who does not ask for JSON: as a page, or as text to one who does
// not ask for pages either.
func (r *reply) writePage(w http.ResponseWriter, request *http.Request) {
	kind, page := "text/html", r.page
	if accept := request.Header.Get("Accept"); !strings.Contains(accept, "text/html") && !strings.Contains(accept, "*/*") {
		kind, page = "text/plain", fmt.Sprintf("%d %s\n\n%s\n\n\n   ", r.status, http.StatusText(r.status), r.words)
	}
	w.Header().Set("Content-Type", kind+"; charset=UTF-8")
	w.WriteHeader(r.status)
	_, _ = io.WriteString(w, page) // a caller that has gone is noted by its context
}

// cmpHeader is the header that is given, or the usual one.
func cmpHeader(given []string, usual string) []string {
	if len(given) > 0 {
		return given
	}
	return []string{usual}
}

// refusal is an error of one of the services.
type refusal struct {
	status int
	// kind is the type of Neutron's errors; elsewhere it follows from the status.
	kind    string
	message string
	// retryAfter is when to come again; 0: the answer does not say.
	retryAfter time.Duration
	// comeAgain says that the answer tells to come again at once.
	comeAgain bool
	// detail says more than message where the form has room for it.
	detail string
	// outside says that it comes from what stands before the service, in the form that this has.
	outside bool
}

func (r *refusal) Error() string { return r.message }

// wait is how many seconds to wait.
func (r *refusal) wait() string {
	return strconv.Itoa(int((r.retryAfter + time.Second - 1) / time.Second))
}

// refuse returns an error of a service.
func refuse(status int, format string, args ...any) error {
	return &refusal{status: status, message: fmt.Sprintf(format, args...)}
}

// refuseAs returns an error of Neutron.
func refuseAs(status int, kind, format string, args ...any) error {
	return &refusal{status: status, kind: kind, message: fmt.Sprintf(format, args...)}
}

// service is one of the services; each says errors in its own way.
type service string

// The services, by their types in the catalog.
const (
	keystone service = "identity"
	nova     service = "compute"
	neutron  service = "network"
	glance   service = "image"
	cinder   service = "volumev3"
)

// computeFaults name errors of Nova and Cinder by status.
var computeFaults = map[int]string{
	http.StatusBadRequest: "badRequest", http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden",
	http.StatusNotFound: "itemNotFound", http.StatusMethodNotAllowed: "badMethod", http.StatusConflict: "conflictingRequest",
	http.StatusRequestEntityTooLarge: "overLimit", http.StatusUnsupportedMediaType: "badMediaType",
	http.StatusTooManyRequests: "overLimit", http.StatusNotImplemented: "notImplemented", http.StatusServiceUnavailable: "serviceUnavailable",
}

// refused is how the service says an error; base is where the cloud was reached.
func (s service) refused(r *refusal, base string) reply {
	answer := reply{status: r.status, words: r.message}
	if r.retryAfter > 0 || r.comeAgain {
		answer.set("Retry-After", r.wait())
	}
	if s == nova && !r.outside {
		answer.set("Content-Type", "application/json; charset=UTF-8")
	}
	if r.status == http.StatusUnauthorized {
		answer.set("Content-Type", "application/json")
		answer.set("WWW-Authenticate", `Keystone uri="`+base+`/v3"`)
	}
	answer.body = s.errorBody(r)
	if r.outside || s == glance {
		delete(answer.header, "Content-Type")
		title := fmt.Sprintf("%d %s", r.status, http.StatusText(r.status))
		answer.page = fmt.Sprintf("<html>\n <head>\n  <title>%[1]s</title>\n </head>\n <body>\n  <h1>%[1]s</h1>\n  %[2]s<br /><br />\n\n\n\n </body>\n</html>",
			title, html.EscapeString(r.message))
	}
	return answer
}

func (s service) errorBody(r *refusal) any {
	title := http.StatusText(r.status)
	switch {
	case r.outside || s == glance:
		message := html.EscapeString(r.message) + "<br /><br />\n" + html.EscapeString(r.detail) + "\n\n"
		return object{"message": message, "code": fmt.Sprintf("%d %s", r.status, title), "title": title}
	case s == keystone || r.status == http.StatusUnauthorized:
		// The middleware before the other services speaks as Keystone does.
		return object{"error": object{"code": r.status, "message": r.message, "title": title}}
	case s == neutron:
		return object{"NeutronError": object{"type": r.kind, "message": r.message, "detail": ""}}
	}
	name := computeFaults[r.status]
	if name == "" {
		name = "computeFault"
	}
	inner := object{"code": r.status, "message": r.message}
	if r.retryAfter > 0 || r.comeAgain {
		inner["retryAfter"] = r.wait()
	}
	return object{name: inner}
}

// grpcCode is what the ledger has for a status.
func grpcCode(status int) codes.Code {
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
