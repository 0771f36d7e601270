package api

import (
	"fmt"
	"html"
	"net/http"
	"strconv"
	"time"
)

// Refusal is an error of one of the services.
type Refusal struct {
	Status int
	// Kind is the type of Neutron's errors; elsewhere it follows from the status.
	Kind    string
	Message string
	// RetryAfter is when to come again; 0: the answer does not say.
	RetryAfter time.Duration
	// ComeAgain says that the answer tells to come again at once.
	ComeAgain bool
	// Detail says more than message where the form has room for it.
	Detail string
	// Outside says that it comes from what stands before the service, in the form that this has.
	Outside bool
}

func (r *Refusal) Error() string { return r.Message }

// wait is how many seconds to wait.
func (r *Refusal) wait() string {
	return strconv.Itoa(int((r.RetryAfter + time.Second - 1) / time.Second))
}

// Refuse returns an error of a service.
func Refuse(status int, format string, args ...any) error {
	return &Refusal{Status: status, Message: fmt.Sprintf(format, args...)}
}

// Invalid is what Nova and Cinder say of a value that their schema does not take. It repeats the
// value, whatever that is.
func Invalid(field, value, why string) error {
	return Refuse(http.StatusBadRequest, "Invalid input for field/attribute %s. Value: %s. %s", field, value, why)
}

// RequiresAuthentication is what Keystone says to whom it does not know, and says no more.
const RequiresAuthentication = "The request you have made requires authentication."

// Unauthorized refuses one whom a service does not know.
func (s Service) Unauthorized() error {
	if s == Glance {
		return Refuse(http.StatusUnauthorized, "This server could not verify that you are authorized to access the document you requested. Either you "+
			"supplied the wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials required.")
	}
	return Refuse(http.StatusUnauthorized, RequiresAuthentication)
}

// computeFaults name errors of Nova and Cinder by status.
var computeFaults = map[int]string{
	http.StatusBadRequest: "badRequest", http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden",
	http.StatusNotFound: "itemNotFound", http.StatusMethodNotAllowed: "badMethod", http.StatusConflict: "conflictingRequest",
	http.StatusRequestEntityTooLarge: "overLimit", http.StatusUnsupportedMediaType: "badMediaType",
	http.StatusTooManyRequests: "overLimit", http.StatusNotImplemented: "notImplemented", http.StatusServiceUnavailable: "serviceUnavailable",
}

// Refused is how the service says an error; base is where the cloud was reached.
func (s Service) Refused(r *Refusal, base string) Reply {
	answer := Reply{Status: r.Status, Words: r.Message}
	if r.RetryAfter > 0 || r.ComeAgain {
		answer.Set("Retry-After", r.wait())
	}
	if s == Nova && !r.Outside {
		answer.Set("Content-Type", "application/json; charset=UTF-8")
	}
	if r.Status == http.StatusUnauthorized {
		answer.Set("Content-Type", "application/json")
		answer.Set("WWW-Authenticate", `Keystone uri="`+base+`/v3"`)
	}
	answer.Body = s.errorBody(r)
	if r.Outside || s == Glance {
		delete(answer.Header, "Content-Type")
		title := fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status))
		answer.Page = fmt.Sprintf("<html>\n <head>\n  <title>%[1]s</title>\n </head>\n <body>\n  <h1>%[1]s</h1>\n  %[2]s<br /><br />\n\n\n\n </body>\n</html>",
			title, html.EscapeString(r.Message))
	}
	return answer
}

func (s Service) errorBody(r *Refusal) any {
	title := http.StatusText(r.Status)
	switch {
	case r.Outside || s == Glance:
		message := html.EscapeString(r.Message) + "<br /><br />\n" + html.EscapeString(r.Detail) + "\n\n"
		return Object{"message": message, "code": fmt.Sprintf("%d %s", r.Status, title), "title": title}
	case s == Keystone || r.Status == http.StatusUnauthorized:
		// The middleware before the other services speaks as Keystone does.
		return Object{"error": Object{"code": r.Status, "message": r.Message, "title": title}}
	case s == Neutron:
		return Object{"NeutronError": Object{"type": r.Kind, "message": r.Message, "detail": ""}}
	}
	name := computeFaults[r.Status]
	if name == "" {
		name = "computeFault"
	}
	inner := Object{"code": r.Status, "message": r.Message}
	if r.RetryAfter > 0 || r.ComeAgain {
		inner["retryAfter"] = r.wait()
	}
	return Object{name: inner}
}
