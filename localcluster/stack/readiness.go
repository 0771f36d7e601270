package stack

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	managerStartTimeout = 3 * time.Minute // on a busy machine; else some seconds
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
