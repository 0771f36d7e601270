package stack

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	managerStartTimeout = 60 * time.Second
	readyPollInterval   = 100 * time.Millisecond
)

// waitForManager returns when the manager serves /readyz.
func (s *Stack) waitForManager(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, managerStartTimeout)
	defer cancel()
	tick := time.NewTicker(readyPollInterval)
	defer tick.Stop()
	for {
		if ready(ctx, "http://"+address+"/readyz") {
			return nil
		}
		select {
		case <-tick.C:
		case err := <-s.failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("wait for the manager to be ready (its log: %s): %w", s.Process(Manager).LogPath(), context.Cause(ctx))
		}
	}
}

func ready(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// freeAddress returns an address on this machine that nobody listens on. Who takes it before the manager does keeps the
// manager from starting for as long as they hold it: it tries again at the same address.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
