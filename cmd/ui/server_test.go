package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/cmd/tree"
	"github.com/millwright-dev/millwright/core/driverstatus"
)

// shelf is a source whose content tests change.
type shelf struct {
	mu    sync.Mutex
	fleet tree.Fleet
	err   error
}

func (s *shelf) set(change func(*shelf)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *shelf) Fleet(context.Context) (tree.Fleet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet, s.err
}

func (s *shelf) Events(context.Context) ([]eventsv1.Event, error) {
	event := func(reason string, minute int) eventsv1.Event {
		return eventsv1.Event{Reason: reason, Type: "Warning", EventTime: metav1.NewMicroTime(time.Unix(int64(60*minute), 0))}
	}
	again := event("Again", 1)
	again.Series = &eventsv1.EventSeries{Count: 4, LastObservedTime: metav1.NewMicroTime(time.Unix(600, 0))}
	return []eventsv1.Event{event("Old", 2), again, event("New", 5)}, nil
}

func (s *shelf) Drivers(context.Context) ([]driverstatus.Driver, error) {
	return []driverstatus.Driver{{Name: "fake", Reason: "away"}}, nil
}

// recorder is an actor that writes down what it was asked for.
type recorder struct{ Actor }

func (recorder) Scale(_ context.Context, t Target) (string, error) { return "scaled " + t.Name, nil }

func (recorder) Delete(context.Context, Target) (string, error) {
	return "", errors.New("forbidden: <b>no</b>")
}

func deployments(names ...string) tree.Fleet {
	var f tree.Fleet
	for _, name := range names {
		f.Deployments = append(f.Deployments, clusterv1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}})
	}
	return f
}

// browser is one that has come in, or has not.
type browser struct {
	t       *testing.T
	address string
	host    string
	cookie  *http.Cookie
}

func serve(t *testing.T, s *Server) *browser {
	t.Helper()
	listener, address, err := s.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(t.Context(), listener) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &browser{t: t, address: address, host: listener.Addr().String()}
}

// answer is what came back.
type answer struct {
	code    int
	header  http.Header
	cookies []*http.Cookie
	text    string
}

// ask sends a request and returns the whole answer.
func (b *browser) ask(method, path, body string, headers map[string]string) answer {
	b.t.Helper()
	response := b.send(method, path, body, headers)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, response.Cookies(), string(text)}
}

// get is ask without a body.
func (b *browser) get(path string) answer {
	b.t.Helper()
	return b.ask(http.MethodGet, path, "", nil)
}

func (b *browser) send(method, path, body string, headers map[string]string) *http.Response {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+b.host+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for key, value := range headers {
		r.Header.Set(key, value)
	}
	if host := headers["Host"]; host != "" {
		r.Host = host
	}
	if b.cookie != nil && headers["Cookie"] == "" {
		r.AddCookie(b.cookie)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	return response
}

// enter opens the printed address.
func (b *browser) enter() {
	b.t.Helper()
	_, ticket, _ := strings.Cut(b.address, b.host)
	answer := b.get(ticket)
	if answer.code != http.StatusSeeOther || len(answer.cookies) != 1 {
		b.t.Fatalf("the printed address answers %d", answer.code)
	}
	b.cookie = answer.cookies[0]
}

// form is the secret that the page has.
func (b *browser) form() string {
	b.t.Helper()
	_, rest, _ := strings.Cut(b.get("/").text, `name="millwright-form" content="`)
	form, _, _ := strings.Cut(rest, `"`)
	return form
}

// The printed address lets in one browser, once; without its cookie nothing is answered.
func TestTheTicketLetsInOneBrowser(t *testing.T) {
	b := serve(t, &Server{Source: &shelf{}, Actor: recorder{}})
	paths := []string{"/", "/app.js", "/style.css", "/stream", "/?ticket=wrong", "/?ticket="}
	for _, path := range paths {
		if answer := b.get(path); answer.code != http.StatusUnauthorized {
			t.Errorf("%s without a cookie answers %d", path, answer.code)
		}
	}
	if answer := b.ask(http.MethodPost, "/actions/scale", "{}", nil); answer.code != http.StatusUnauthorized {
		t.Errorf("an action without a cookie answers %d", answer.code)
	}
	b.enter()
	if c := b.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie is %+v", c)
	}
	other := &browser{t: t, address: b.address, host: b.host}
	_, ticket, _ := strings.Cut(b.address, b.host)
	if answer := other.get(ticket); answer.code != http.StatusUnauthorized {
		t.Errorf("the ticket, used again, answers %d", answer.code)
	}
	for _, path := range []string{"/", "/app.js", "/style.css"} {
		answer := b.get(path)
		if answer.code != http.StatusOK || !strings.Contains(answer.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s answers %d with %v", path, answer.code, answer.header)
		}
	}
	for _, path := range []string{"/static/", "/index.html", "/api/v1/secrets", "/stream/x", "/actions/scale"} {
		if answer := b.get(path); answer.code == http.StatusOK {
			t.Errorf("%s answers %d", path, answer.code)
		}
	}
}

// What comes from elsewhere changes nothing, and reads nothing.
func TestOtherPagesAreRefused(t *testing.T) {
	b := serve(t, &Server{Source: &shelf{}, Actor: recorder{}})
	b.enter()
	form := b.form()
	const target = `{"kind":"MachineDeployment","namespace":"team","name":"web","uid":"1","replicas":3}`
	for name, tc := range map[string]struct {
		method, path, body string
		headers            map[string]string
		code               int
		says               string
	}{
		"the page itself":              {"POST", "/actions/scale", target, map[string]string{formHeader: form, "Origin": "http://" + b.host}, 200, "scaled web"},
		"another name of this address": {"GET", "/", "", map[string]string{"Host": "attacker.example:1"}, 421, b.host},
		"a page of another site":       {"GET", "/", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, ""},
		"a page on another port":       {"GET", "/stream", "", map[string]string{"Sec-Fetch-Site": "same-site"}, 403, ""},
		"a form of another site":       {"POST", "/actions/scale", target, map[string]string{formHeader: form, "Origin": "http://attacker.example"}, 403, ""},
		"what another site fetches":    {"POST", "/actions/scale", target, map[string]string{formHeader: form, "Sec-Fetch-Site": "cross-site"}, 403, ""},
		"without the page's secret":    {"POST", "/actions/scale", target, nil, 403, "reload"},
		"with a wrong secret":          {"POST", "/actions/scale", target, map[string]string{formHeader: "x"}, 403, "reload"},
		"with a wrong cookie":          {"POST", "/actions/scale", target, map[string]string{formHeader: form, "Cookie": cookieName + "=x"}, 401, ""},
		"an action that is none":       {"POST", "/actions/explode", target, map[string]string{formHeader: form}, 404, "no such action"},
		"no object":                    {"POST", "/actions/scale", "{}", map[string]string{formHeader: form}, 422, "uid"},
		"an unknown field":             {"POST", "/actions/scale", `{"path":"/api"}`, map[string]string{formHeader: form}, 400, "path"},
		"too much":                     {"POST", "/actions/scale", `{"name":"` + strings.Repeat("x", mostBytes) + `"}`, map[string]string{formHeader: form}, 400, "too large"},
		"a kind without rollouts":      {"POST", "/actions/pause", strings.Replace(target, "MachineDeployment", "Machine", 1), map[string]string{formHeader: form}, 422, "is a Machine"},
		"what the API server refuses":  {"POST", "/actions/delete", target, map[string]string{formHeader: form}, 422, "forbidden: <b>no</b>"},
	} {
		answer := b.ask(tc.method, tc.path, tc.body, tc.headers)
		if answer.code != tc.code || !strings.Contains(answer.text, tc.says) {
			t.Errorf("%s: %d %s, want %d with %q", name, answer.code, answer.text, tc.code, tc.says)
		}
		if kind := answer.header.Get("Content-Type"); tc.method == http.MethodPost && !strings.HasPrefix(kind, "text/plain") {
			t.Errorf("%s: the answer is %s", name, kind)
		}
	}
	readOnly := serve(t, &Server{Source: &shelf{}})
	readOnly.enter()
	answer := readOnly.ask(http.MethodPost, "/actions/scale", target, map[string]string{formHeader: readOnly.form()})
	if answer.code != http.StatusForbidden || !strings.Contains(answer.text, "--write") {
		t.Errorf("without --write: %d %s", answer.code, answer.text)
	}
}

// A stream tells everything first, and then what changes.
func TestAStreamTellsWhatChanges(t *testing.T) {
	source := &shelf{fleet: deployments("a", "b")}
	b := serve(t, &Server{Source: source})
	b.enter()
	stream := b.send(http.MethodGet, "/stream", "", nil)
	defer func() { _ = stream.Body.Close() }()
	lines := bufio.NewScanner(stream.Body)
	next := func() (kind, data string) {
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				kind = rest
			} else if data, ok = strings.CutPrefix(lines.Text(), "data: "); ok {
				return kind, data
			}
		}
		t.Fatal("the stream has ended")
		return "", ""
	}
	type shown struct {
		Rows  []row
		Gone  []string
		Order []string
		Rest  *rest
	}
	read := func() shown {
		var s shown
		kind, data := next()
		if err := json.Unmarshal([]byte(data), &s); kind != "delta" || err != nil {
			t.Fatalf("%s: %v: %s", kind, err, data)
		}
		return s
	}
	first := read()
	if len(first.Rows) != 2 || len(first.Order) != 2 || first.Rest == nil {
		t.Fatalf("at first it tells %+v", first)
	}
	var reasons []string
	for _, e := range first.Rest.Events {
		reasons = append(reasons, e.Reason)
	}
	if diff := cmp.Diff([]string{"Again", "New", "Old"}, reasons); diff != "" || first.Rest.Drivers[0].Why != "away" {
		t.Errorf("beside the rows it tells %+v", first.Rest)
	}
	source.set(func(s *shelf) { s.fleet = deployments("a", "c"); s.fleet.Deployments[0].Spec.Paused = true })
	second := read()
	if len(second.Rows) != 2 || !second.Rows[0].Paused || second.Rows[0].UID != "a" || second.Rest != nil ||
		!cmp.Equal(second.Gone, []string{"MachineDeployment/team/b"}) || len(second.Order) != 2 {
		t.Errorf("then it tells %+v", second)
	}
	source.set(func(s *shelf) { s.err = errors.New("the API server is away") })
	if kind, data := next(); kind != "problem" || !strings.Contains(data, "is away") {
		t.Errorf("%s: %s", kind, data)
	}
	source.set(func(s *shelf) { s.err = nil })
	for kind := "problem"; kind == "problem"; {
		kind, _ = next() // it is told when the problem is over
	}
}
