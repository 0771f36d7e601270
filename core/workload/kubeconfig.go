package workload

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"sync"

	"github.com/go-logr/logr"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config returns how to reach the cluster that a kubeconfig names by its current context. Whenever
// the file has changed, the next request is made by what it says then. A file that cannot be used
// is logged once, and what was said before holds. Only the path behind the server's address has to
// stay.
func Config(path string, log logr.Logger) (*rest.Config, error) {
	r := &rotating{path: path, log: log}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	r.seen = info
	return &rest.Config{Host: r.server.String(), Transport: r}, nil
}

// rotating makes requests as a kubeconfig says at the time. It is safe for concurrent use.
type rotating struct {
	path string
	log  logr.Logger

	mu sync.Mutex
	// seen is the file as it was last looked at; nil where it was not there.
	seen    os.FileInfo
	server  *url.URL
	current http.RoundTripper
}

// RoundTrip makes one request.
func (r *rotating) RoundTrip(request *http.Request) (*http.Response, error) {
	transport, server := r.latest()
	if request.URL.Host != server.Host {
		request = request.Clone(request.Context())
		request.URL.Host, request.Host = server.Host, ""
	}
	return transport.RoundTrip(request)
}

// latest returns what requests are to be made by now.
func (r *rotating) latest() (http.RoundTripper, *url.URL) {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Stat(r.path)
	known := r.seen
	r.seen = info
	switch {
	case err != nil && known == nil, err == nil && known != nil && isSame(info, known):
		return r.current, r.server
	case err == nil:
		err = r.load()
	}
	if err != nil {
		r.log.Error(err, "The kubeconfig of the Nodes' cluster cannot be used; what it said before holds", "file", r.path)
	} else {
		r.log.Info("The kubeconfig of the Nodes' cluster has changed", "file", r.path, "server", r.server.Host)
	}
	return r.current, r.server
}

// isSame says whether a file has not changed: a Secret's volume puts another one in its place.
func isSame(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// load takes over what the file says.
func (r *rotating) load() error {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: r.path}
	raw, err := rules.Load()
	if err != nil {
		return err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, "", nil, rules).ClientConfig()
	if err != nil {
		return err
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return fmt.Errorf("the server of the current context's cluster: %w", err)
	}
	switch {
	case server.Scheme != "https" || server.Host == "":
		return fmt.Errorf("the server of the current context's cluster is %q: it must be https://HOST", config.Host)
	case r.server != nil && r.server.Path != server.Path:
		return fmt.Errorf("the server's path changes from %q to %q: start the manager again", r.server.Path, server.Path)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return err
	}
	if r.current != nil {
		utilnet.CloseIdleConnectionsFor(r.current)
	}
	r.server, r.current = server, transport
	return nil
}
