package apicases_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

type (
	object = map[string]any
	list   = []any
)

// run is a case at work: it sends requests and writes the transcript.
type run struct {
	*testing.T
	target
	sessions   map[string]session
	names      names
	transcript strings.Builder
	client     *http.Client
}

func newRun(t *testing.T, on target) *run {
	r := &run{T: t, target: on, sessions: map[string]session{}, client: &http.Client{
		Timeout:       on.patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	r.names.add("run", fmt.Sprintf("%x", time.Now().UnixNano()))
	t.Cleanup(r.client.CloseIdleConnections)
	return r
}

// name has a value stand in the transcript by a name.
func (r *run) name(name, value string) string {
	r.names.add(name, value)
	return value
}

// unique is a name of something in the cloud that no run before has used.
func (r *run) unique(name string) string { return name + "-" + r.names.value("run") }

// request says what differs from an ordinary request of the member.
type request struct {
	user    string            // who sends it; "": the member
	token   *string           // instead of the user's
	version string            // of the compute API; "none": no header
	header  map[string]string // in addition
	only    []string          // what of the answer is written; see pick
	quiet   bool              // nothing is written
}

type option func(*request)

func as(user string) option { return func(q *request) { q.user = user } }

func version(v string) option { return func(q *request) { q.version = v } }

func withToken(token string) option { return func(q *request) { q.token = &token } }

// only writes parts of the answer: paths of names with dots between them, which lead into every
// element of a list; * is the sorted names of an object.
func only(paths ...string) option { return func(q *request) { q.only = paths } }

// ifMatch has a change only be made to what is as it was.
func ifMatch(value string) option {
	return func(q *request) { q.header = map[string]string{"If-Match": value} }
}

func quiet() option { return func(q *request) { q.quiet = true } }

// answer is what a request got.
type answer struct {
	run    *run
	status int
	header http.Header
	raw    []byte
	body   any
}

// text is the string at a path of the answer's body; the case ends if there is none.
func (a answer) text(path string) string {
	a.run.Helper()
	text, ok := pick(a.body, path).(string)
	if !ok {
		a.run.Fatalf("the answer has no text at %s: %d %s", path, a.status, a.raw)
	}
	return text
}

// number is the whole number at a path of the answer's body; the case ends if there is none.
func (a answer) number(path string) string {
	a.run.Helper()
	number, ok := pick(a.body, path).(json.Number)
	if !ok {
		a.run.Fatalf("the answer has no number at %s: %d %s", path, a.status, a.raw)
	}
	return number.String()
}

// names gives the text at a path a name, and returns it.
func (a answer) names(name, path string) string {
	a.run.Helper()
	return a.run.name(name, a.text(path))
}

// call sends a request and writes it down with its answer. A body of nil is none.
func (r *run) call(method, service, path string, body any, options ...option) answer {
	r.Helper()
	q := request{user: member, version: defaultVersion}
	for _, o := range options {
		o(&q)
	}
	s := r.login(q.user)
	header := http.Header{}
	if q.token == nil {
		q.token = &s.token
	}
	if *q.token != "" {
		header.Set("X-Auth-Token", *q.token)
	}
	if service == compute && q.version != "none" {
		header.Set("OpenStack-API-Version", "compute "+q.version)
	}
	for key, value := range q.header {
		header.Set(key, value)
	}
	response, raw := r.send(method, s.endpoints[service]+path, header, body) //nolint:bodyclose // send has read and closed it
	a := answer{run: r, status: response.StatusCode, header: response.Header, raw: raw, body: decode(raw)}
	if !q.quiet {
		r.writeRequest(method, service, path, body, q)
		r.writeAnswer(a, q)
	}
	return a
}

// send sends a request and reads the whole answer.
func (r *run) send(method, address string, header http.Header, body any) (*http.Response, []byte) {
	r.Helper()
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			r.Fatal(err)
		}
		reader = bytes.NewReader(raw)
	}
	// Cleanups send requests, when the test's own context has ended.
	request, err := http.NewRequest(method, address, reader)
	if err != nil {
		r.Fatal(err)
	}
	if header != nil {
		request.Header = header
	}
	// As gophercloud does: some services choose the form of their errors by it.
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := r.client.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		r.Fatal(err)
	}
	return response, raw
}

// await waits until there is what is waited for.
func (r *run) await(what string, done func() bool) {
	r.Helper()
	deadline := time.Now().Add(r.patience)
	ticks := time.NewTicker(r.pause)
	defer ticks.Stop()
	for !done() {
		if time.Now().After(deadline) {
			r.Fatalf("no %s in %s", what, r.patience)
		}
		<-ticks.C
	}
}

// settle waits until a server has that status and nothing is being done to it.
func (r *run) settle(id, status string) {
	r.Helper()
	r.await("status "+status, func() bool {
		a := r.call(http.MethodGet, compute, "/servers/"+id, nil, quiet())
		return a.status == http.StatusOK && a.text("server.status") == status && pick(a.body, "server.OS-EXT-STS:task_state") == nil
	})
}

// gone waits until a server is no more.
func (r *run) gone(id string) {
	r.Helper()
	r.await("end of the server", func() bool {
		return r.call(http.MethodGet, compute, "/servers/"+id, nil, quiet()).status == http.StatusNotFound
	})
}

// owns has what is at the path deleted when the case is over, whether or not it is still there.
func (r *run) owns(service, path string) {
	if r.disposable {
		return
	}
	r.Cleanup(func() {
		r.call(http.MethodDelete, service, path, nil, quiet())
		if id, isServer := strings.CutPrefix(path, "/servers/"); isServer {
			r.gone(id)
		}
	})
}

// note writes a line of the case's own.
func (r *run) note(format string, args ...any) {
	fmt.Fprintf(&r.transcript, "# "+format+"\n\n", args...)
}

func (r *run) writeRequest(method, service, path string, body any, q request) {
	version := ""
	if service == compute && q.version != defaultVersion {
		version = " " + q.version
	}
	user := ""
	if q.user != member {
		user = " as " + q.user
	}
	if decoded, err := url.QueryUnescape(path); err == nil {
		path = decoded
	}
	fmt.Fprintf(&r.transcript, "%s %s%s %s%s\n", method, service, version, r.names.replace(path), user)
	if body != nil {
		r.write(roundTrip(body))
	}
}

// shownHeaders are those that a client may look at.
var shownHeaders = []string{"Content-Type", "Location", "OpenStack-API-Version", "Retry-After", "WWW-Authenticate"}

func (r *run) writeAnswer(a answer, q request) {
	fmt.Fprintf(&r.transcript, "-> %d\n", a.status)
	for _, name := range shownHeaders {
		// Without a body, the type is that of nothing.
		if value := a.header.Get(name); value != "" && (name != "Content-Type" || len(a.raw) > 0) {
			fmt.Fprintf(&r.transcript, "%s: %s\n", name, r.names.replace(value))
		}
	}
	switch {
	case len(a.raw) == 0:
	case a.body == nil:
		r.transcript.WriteString(strings.Join(strings.Fields(r.names.replace(string(a.raw))), " ") + "\n")
	case q.only == nil || a.status >= http.StatusBadRequest:
		r.write(a.body)
	default:
		parts := object{}
		for _, path := range q.only {
			parts[path] = pick(a.body, path)
		}
		r.write(parts)
	}
	r.transcript.WriteString("\n")
}

// write writes a JSON value in the terms of names.
func (r *run) write(body any) {
	r.transcript.WriteString(layout(r.names.plain("", body), "") + "\n")
}

// width is what a line should not be longer than.
const width = 120

// layout is a JSON value on one line where it fits, otherwise with a line for each of its parts.
func layout(value any, indent string) string {
	if line := compact(value); len(indent)+len(line) <= width {
		return line
	}
	var lines []string
	deeper := indent + "  "
	switch v := value.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			lines = append(lines, compact(key)+": "+layout(v[key], deeper))
		}
		return "{\n" + deeper + strings.Join(lines, ",\n"+deeper) + "\n" + indent + "}"
	case list:
		for _, element := range v {
			lines = append(lines, layout(element, deeper))
		}
		return "[\n" + deeper + strings.Join(lines, ",\n"+deeper) + "\n" + indent + "]"
	}
	return compact(value)
}

func compact(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(text.String())
}

// decode is a JSON value with its numbers as they are written; nil if it is none.
func decode(raw []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil
	}
	return value
}

func roundTrip(body any) any {
	raw, err := json.Marshal(body)
	if err != nil {
		return err.Error()
	}
	return decode(raw)
}

// pick is the part of a value at a path; nil if there is none. See only.
func pick(value any, path string) any {
	if path == "" {
		return value
	}
	step, rest, _ := strings.Cut(path, ".")
	switch v := value.(type) {
	case object:
		if step == "*" {
			keys := list{}
			for key := range v {
				keys = append(keys, key)
			}
			slices.SortFunc(keys, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
			return keys
		}
		return pick(v[step], rest)
	case list:
		parts := list{}
		for _, element := range v {
			parts = append(parts, pick(element, path))
		}
		return parts
	}
	return nil
}
