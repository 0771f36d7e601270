package ui

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// Server serves the page.
type Server struct {
	// Source is what is shown.
	Source Source
	// Actor carries out what the person asks for; nil where nothing may be changed.
	Actor Actor

	session *session
	viewer  *viewer
}

// refresh is how often the page learns of changes.
const refresh = 500 * time.Millisecond

// Listen listens on a free port of loopback, or on that port, and returns the address that a person
// opens.
func (s *Server) Listen(ctx context.Context, port int) (listener net.Listener, address string, err error) {
	var config net.ListenConfig
	if listener, err = config.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
		return nil, "", err
	}
	s.session, s.viewer = newSession(), &viewer{source: s.Source}
	return listener, fmt.Sprintf("http://%s/?ticket=%s", listener.Addr(), s.session.ticket), nil
}

// Serve serves the page on a listener of Listen until ctx ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: guard(listener.Addr().String(), s.session, s.routes()), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }, // streams end with it
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-ctx.Done()
		_ = server.Close() // what the page has asked for lately it can ask for again
	}()
	err := server.Serve(listener)
	if ctx.Err() == nil {
		return err
	}
	<-ended
	return nil
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	files, _ := fs.Sub(static, "static") // it is there: it was embedded
	mux.Handle("GET /app.js", http.FileServerFS(files))
	mux.Handle("GET /style.css", http.FileServerFS(files))
	mux.Handle("GET /icon.svg", http.FileServerFS(files))
	mux.HandleFunc("GET /{$}", s.servePage)
	mux.HandleFunc("GET /stream", s.serveStream)
	mux.HandleFunc("POST /actions/{action}", s.serveAction)
	return mux
}

// servePage serves the page with its form secret, and with what it may do.
func (s *Server) servePage(w http.ResponseWriter, _ *http.Request) {
	page, err := static.ReadFile("static/index.html")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	mode := map[bool]string{true: "write", false: "read"}[s.Actor != nil]
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = strings.NewReplacer("{{form}}", s.session.form, "{{mode}}", mode).WriteString(w, string(page)) // the browser may go away
}

// serveStream sends what the page shows, and then what changes of it.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	stream := http.NewResponseController(w)
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	var shown follower
	failed := false
	for {
		kind, text := "", ""
		v, err := s.viewer.view(r.Context())
		if err != nil {
			kind, text = "problem", encoded(err.Error())
		} else if d := shown.next(v); d != nil || failed {
			kind, text = "delta", encoded(d) // after a problem even if nothing has changed: it is over
		}
		failed = err != nil
		if kind != "" {
			_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, text)
			if err := stream.Flush(); err != nil {
				return // the browser went away
			}
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// mostBytes is how long a request of the page may be.
const mostBytes = 10_000

// serveAction does what the page asks for, and answers in the API server's words.
func (s *Server) serveAction(w http.ResponseWriter, r *http.Request) {
	if s.Actor == nil {
		http.Error(w, "nothing can be changed here: start it with --write", http.StatusForbidden)
		return
	}
	if !s.session.isFromPage(r) {
		http.Error(w, "this does not come from the page: reload it", http.StatusForbidden)
		return
	}
	var target Target
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBytes))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&target); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	said, err := act(r.Context(), s.Actor, r.PathValue("action"), target)
	switch {
	case errors.Is(err, errNoSuchAction):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	default:
		_, _ = fmt.Fprintln(w, said)
	}
}
