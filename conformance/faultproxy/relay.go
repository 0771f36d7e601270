package faultproxy

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// Call is a request that arrived.
type Call struct {
	Time   time.Time `json:"time"`
	Port   string    `json:"port"`
	Method string    `json:"method"`
	// URL is the path and the query.
	URL string `json:"url"`
	// Status is what was answered; 0: nothing, or not yet.
	Status int `json:"status"`
	// Broken: a rule ruled it.
	Broken bool `json:"broken"`
}

// Proxy is the rules, the calls, and the relays that both are about. The zero value is not ready;
// see New.
type Proxy struct {
	log   *slog.Logger
	rules rules
	// transport opens a connection for each request: what a request meets is the service as it is
	// now.
	transport http.RoundTripper

	mu    sync.Mutex
	calls []*Call
}

// New returns a proxy without rules. It logs where it listens, and what its relays cannot reach.
// Like other programs it reaches services through the proxy that HTTPS_PROXY and HTTP_PROXY name.
func New(log *slog.Logger) *Proxy {
	return &Proxy{log: log, transport: transport()}
}

func transport() http.RoundTripper {
	usual, is := http.DefaultTransport.(*http.Transport)
	if !is {
		usual = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	own := usual.Clone()
	own.DisableKeepAlives = true
	// An answer is passed on as it came, and cut off where a rule says.
	own.DisableCompression = true
	return own
}

// Relay serves the requests that come to port by passing them on to target.
func (p *Proxy) Relay(port string, target *url.URL) http.Handler {
	relay := &httputil.ReverseProxy{
		Transport: p.transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // the services write it into links, which are to lead here
			if target.Scheme == "https" {
				r.Out.Host = target.Host // by it they choose whom they are
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			p.log.Info("request not passed on", "target", target.Host, "method", r.Method, "error", err)
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rule, broken := p.rules.pick(r.Method, port, r.URL.Path)
		call := p.note(&Call{Time: time.Now(), Port: port, Method: r.Method, URL: r.URL.RequestURI(), Broken: broken})
		answer := &answer{ResponseWriter: w, proxy: p, call: call}
		if broken && p.breaks(answer, r, rule, relay) {
			return
		}
		relay.ServeHTTP(answer, r)
	})
}

// breaks does what the rule says; false: the service is to answer.
func (p *Proxy) breaks(w http.ResponseWriter, r *http.Request, rule Rule, relay http.Handler) bool {
	select {
	case <-time.After(time.Duration(rule.Delay)):
	case <-r.Context().Done():
	}
	switch {
	case rule.Drop == dropAfter:
		relay.ServeHTTP(&nowhere{header: http.Header{}}, r)
		panic(http.ErrAbortHandler)
	case rule.Drop == dropBefore:
		panic(http.ErrAbortHandler)
	case rule.Truncate > 0:
		relay.ServeHTTP(&truncated{ResponseWriter: w, left: rule.Truncate}, r)
		return true
	case rule.Status == 0:
		return false
	}
	for name, value := range rule.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(rule.Status)
	if _, err := io.WriteString(w, rule.Body); err != nil {
		p.log.Info("caller has gone", "error", err)
	}
	return true
}

func (p *Proxy) note(c *Call) *Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
	return c
}

// Calls are the requests so far, in the order of their arrival; forget forgets them afterwards.
func (p *Proxy) Calls(forget bool) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := make([]Call, 0, len(p.calls))
	for _, c := range p.calls {
		calls = append(calls, *c)
	}
	if forget {
		p.calls = nil
	}
	return calls
}

// answer notes the status of what is written.
type answer struct {
	http.ResponseWriter
	proxy *Proxy
	call  *Call
}

// WriteHeader notes the status and passes it on.
func (a *answer) WriteHeader(status int) {
	a.proxy.mu.Lock()
	a.call.Status = status
	a.proxy.mu.Unlock()
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController find the writer below.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// truncated passes on the beginning of an answer, and breaks the connection off.
type truncated struct {
	http.ResponseWriter
	left int
}

func (t *truncated) Write(b []byte) (int, error) {
	if len(b) <= t.left {
		t.left -= len(b)
		return t.ResponseWriter.Write(b)
	}
	_, _ = t.ResponseWriter.Write(b[:t.left]) // the connection ends anyway
	_ = http.NewResponseController(t.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// nowhere is where an answer goes that nobody is to get.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header       { return n.header }
func (*nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (*nowhere) WriteHeader(int)             {}
