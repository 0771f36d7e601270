package faultproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Serve listens at control, and for each relay, LISTEN=TARGET, at LISTEN, until ctx ends. Both are
// addresses of this machine, TARGET is HOST:PORT or https://HOST:PORT. It
// returns nil then, else why it cannot listen or serve. What is under way when it ends is broken
// off.
func (p *Proxy) Serve(ctx context.Context, control string, relays []string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	servers := []server{{control, "control", p.Control()}}
	for _, relay := range relays {
		one, err := p.server(relay)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(servers, one.collides) {
			return fmt.Errorf("%q is given twice: each relay and -control listen at an address of their own", one.listen)
		}
		servers = append(servers, one)
	}
	for _, one := range servers {
		host, _, err := net.SplitHostPort(one.listen)
		if ip := net.ParseIP(host); err != nil || !ip.IsLoopback() {
			return fmt.Errorf("%q is no address of this machine alone: listen on 127.0.0.1:PORT, since requests hold credentials", one.listen)
		}
		listener, err := net.Listen("tcp", one.listen)
		if err != nil {
			return fmt.Errorf("serve: %w", err)
		}
		p.log.Info("fault proxy listens", "address", listener.Addr().String(), "for", one.what)
		served := &http.Server{Handler: one.handler, ReadHeaderTimeout: time.Minute}
		defer func() { _ = served.Close() }()
		go func() { stop(served.Serve(listener)) }()
	}
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// server is what is served at an address; what says so for people.
type server struct {
	listen, what string
	handler      http.Handler
}

// collides says whether both would listen at the same address. Port 0 is another each time.
func (s server) collides(other server) bool {
	return s.listen == other.listen && !strings.HasSuffix(s.listen, ":0")
}

// server is that of a relay, LISTEN=TARGET.
func (p *Proxy) server(relay string) (server, error) {
	listen, to, _ := strings.Cut(relay, "=")
	_, port, err := net.SplitHostPort(listen)
	if !strings.Contains(to, "://") {
		to = "http://" + to
	}
	target, unread := url.Parse(to)
	if err != nil || unread != nil || target.Host == "" {
		return server{}, fmt.Errorf("relay %q is not LISTEN=TARGET, such as 127.0.0.1:15000=https://api.example.com:443", relay)
	}
	return server{listen, target.String(), p.Relay(port, target)}, nil
}

// Control serves rules and calls, as the package's comment says.
func (p *Proxy) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rules", func(w http.ResponseWriter, _ *http.Request) { tell(w, p.rules.list()) })
	mux.HandleFunc("PUT /rules", func(w http.ResponseWriter, r *http.Request) {
		var given []Rule
		decoder := json.NewDecoder(r.Body)
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&given)
		if err == nil {
			err = p.rules.set(given)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		tell(w, p.rules.list())
	})
	mux.HandleFunc("GET /calls", func(w http.ResponseWriter, _ *http.Request) { tell(w, p.Calls(false)) })
	mux.HandleFunc("DELETE /calls", func(w http.ResponseWriter, _ *http.Request) { tell(w, p.Calls(true)) })
	return mux
}

func tell(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(what); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
