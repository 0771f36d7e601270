package rig

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/millwright-dev/millwright/proto/contract"
	"github.com/millwright-dev/millwright/sdk"
)

// stopTimeout is how long calls that a test has left under way may hold up its end.
const stopTimeout = 10 * time.Second

// Start serves driver until the test ends and returns a connection to it, as core would make it: 8
// MiB both ways, no retry. A driver that cannot be served fails the test at once. Each call may use
// a connection of its own: two drivers on one cloud are two Starts.
func Start(tb testing.TB, driver sdk.Driver) *grpc.ClientConn {
	tb.Helper()
	// A test's own folder has the test's name in it, which may be too long for a socket.
	dir, err := os.MkdirTemp("", "rig")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	endpoint := "unix://" + filepath.Join(dir, "d.sock")
	serve(tb, driver, endpoint)
	checked := checker{
		tb: tb, name: driver.Info().Name, prefix: driver.Info().ProviderIDPrefix,
	}
	conn, err := grpc.NewClient(endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(contract.MaxMessageBytes), grpc.MaxCallSendMsgSize(contract.MaxMessageBytes)),
		grpc.WithChainUnaryInterceptor(checked.intercept),
	)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// serve returns when calls are accepted, and serves until the test ends.
func serve(tb testing.TB, driver sdk.Driver, endpoint string) {
	tb.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(tb.Context()))
	ready, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		stopped <- sdk.Serve(ctx, driver, sdk.Options{
			Endpoint: endpoint, StopTimeout: stopTimeout, Ready: func() { close(ready) },
			Log: slog.New(slog.NewTextHandler(tb.Output(), nil)),
		})
	}()
	select {
	case <-ready:
		tb.Cleanup(func() {
			stop()
			if err := <-stopped; err != nil {
				tb.Errorf("stop the driver: %v", err)
			}
		})
	case err := <-stopped:
		stop()
		tb.Fatalf("serve the driver: %v", err)
	}
}
