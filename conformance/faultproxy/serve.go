package faultproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
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
	servers := map[string]http.Handler{control: p.Control()}
	for _, relay := range relays {
		listen, to, _ := strings.Cut(relay, "=")
		_, port, err := net.SplitHostPort(listen)
		if !strings.Contains(to, "://") {
			to = "http://" + to
		}
		target, unread := url.Parse(to)
		if err != nil || unread != nil || target.Host == "" {
			return fmt.Errorf("relay %q is not LISTEN=TARGET, such as 127.0.0.1:15000=https://api.example.com:443", relay)
		}
		servers[listen] = p.Relay(port, target)
	}
	for listen, handler := range servers {
		host, _, err := net.SplitHostPort(listen)
		if ip := net.ParseIP(host); err != nil || !ip.IsLoopback() {
			return fmt.Errorf("%q is no address of this machine alone: listen on 127.0.0.1:PORT, since requests hold credentials", listen)
		}
		listener, err := net.Listen("tcp", listen)
		if err != nil {
			return fmt.Errorf("serve: %w", err)
		}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
		defer func() { _ = server.Close() }()
		go func() { stop(server.Serve(listener)) }()
	}
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
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
