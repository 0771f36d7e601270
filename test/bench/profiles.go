package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// maxProfile is the longest that a CPU profile takes.
const maxProfile = time.Minute

// startProfile has the manager profile itself, if that is wanted. The result ends the profile and saves it.
func (r *run) startProfile(ctx context.Context, phase string) (end func() error) {
	if r.options.Profiles == "" {
		return func() error { return nil }
	}
	// The server only answers when the time is over: more than one short profile would fall between two.
	seconds := min(maxProfile, time.Duration(r.options.Machines)*10*time.Millisecond+time.Second)
	done := make(chan error, 1)
	go func() { done <- r.saveProfile(ctx, phase, fmt.Sprintf("profile?seconds=%d", int(seconds.Seconds()))) }()
	return func() error { return <-done }
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

// saveServerMetrics saves what the API server says of itself: how often everything was read, and how long that took.
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
