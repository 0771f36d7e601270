package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
)

// startProfile has the manager profile itself, if that is wanted, until the result is called. The
// server answers only when a profile's time is over: there is a file for each few seconds, and the
// tool adds them up.
func (r *run) startProfile(ctx context.Context, phase string) (end func() error) {
	if r.options.Profiles == "" {
		return func() error { return nil }
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			err := r.saveProfile(ctx, fmt.Sprintf("%s.%03d", phase, i), "profile?seconds=2")
			select {
			case <-stop:
				done <- err
				return
			default:
			}
			if err != nil {
				done <- err
				return
			}
		}
	}()
	return func() error {
		close(stop)
		return <-done
	}
}

// saveProfile saves one of the manager's profiles, if that is wanted.
func (r *run) saveProfile(ctx context.Context, phase, kind string) error {
	if r.options.Profiles == "" {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.profiling+"/debug/pprof/"+kind, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("profile the manager: %w", err)
	}
	defer answer.Body.Close()
	name, _, _ := strings.Cut(kind, "?")
	return r.save(phase+"."+name+".pprof", answer.Body)
}

// saveServerMetrics saves what the API server says of itself: how often everything was read, and
// how long that took.
func (r *run) saveServerMetrics(ctx context.Context, phase string) error {
	if r.options.Profiles == "" {
		return nil
	}
	config := r.stack.RESTConfig()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("make the client: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/metrics", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("read the API server's metrics: %w", err)
	}
	defer answer.Body.Close()
	return r.save(phase+".kube-apiserver.metrics", answer.Body)
}

func (r *run) save(name string, content io.Reader) error {
	if err := os.MkdirAll(r.options.Profiles, 0o700); err != nil {
		return fmt.Errorf("make the folder of profiles: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(r.options.Profiles, name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("save a profile: %w", err)
	}
	defer file.Close()
	if _, err := io.Copy(file, content); err != nil {
		return fmt.Errorf("save a profile: %w", err)
	}
	return nil
}
