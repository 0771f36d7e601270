package manager

import (
	"context"
	"net/http/httptest"
	"testing"
)

func TestReadyOnceCachesHaveSynced(t *testing.T) {
	// As the caches do: they wait until they are full, or the time is over.
	full := make(chan struct{})
	check := cachesSynced(func(ctx context.Context) bool {
		select {
		case <-full:
			return true
		case <-ctx.Done():
			return false
		}
	})
	probe := httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil)
	if err := check(probe); err == nil {
		t.Error("ready with empty caches")
	}
	close(full)
	if err := check(probe); err != nil {
		t.Errorf("not ready with full caches: %v", err)
	}
}
