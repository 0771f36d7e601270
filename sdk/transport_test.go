package sdk_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/time/rate"

	"github.com/millwright-dev/millwright/sdk"
)

func TestCallsToACloudAreLimitedAndCounted(t *testing.T) {
	asked := 0
	cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer cloud.Close()
	registry := prometheus.NewPedanticRegistry()
	metrics, err := sdk.NewCloudMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &sdk.CloudTransport{Limiter: rate.NewLimiter(rate.Every(time.Hour), 2), Metrics: metrics}}
	get := func(ctx context.Context, url string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	if err := get(t.Context(), cloud.URL); err != nil {
		t.Fatal(err)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if err := get(t.Context(), gone.URL); err == nil {
		t.Error("nobody was there, and it has answered")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := get(ctx, cloud.URL); err == nil || asked != 1 {
		t.Errorf("the third call of two in an hour: %v; the cloud was asked %d times, and 429 is not retried", err, asked)
	}
	if n := testutil.CollectAndCount(registry, "millwright_driver_cloud_call_duration_seconds"); n != 2 {
		t.Errorf("%d kinds of calls were counted, want 2", n)
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(""), "millwright_driver_cloud_none"); err != nil {
		t.Error(err)
	}
	if _, err := sdk.NewCloudMetrics(registry); err == nil {
		t.Error("the metrics were registered twice")
	}
}
