// Command millwright-driver-example is a driver of a small cloud with an HTTP API, that of
// fakecloud.
package main

import (
	"context"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/time/rate"

	"github.com/millwright-dev/millwright/sdk"
)

// version is set by the linker.
var version = "dev"

func main() {
	endpoint := flag.String("endpoint", "", "where to serve, as unix:///path (default $MILLWRIGHT_ENDPOINT)")
	cloud := flag.String("cloud", "http://127.0.0.1:8180", "where the cloud's API is")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	limit := rate.NewLimiter(1000, 100) // what the cloud's API takes in a second
	d := &driver{endpoint: *cloud, http: &http.Client{Transport: &sdk.CloudTransport{Limiter: limit}}}
	if err := sdk.Serve(ctx, d, sdk.Options{Endpoint: *endpoint}); err != nil {
		slog.Error("driver ended", "error", err)
		os.Exit(1)
	}
}
