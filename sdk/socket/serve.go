package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
)

// ErrCut is what Serve returns when calls were still under way after the time they had to end.
var ErrCut = errors.New("calls under way did not end in time and were cut off")

// Serve serves until ctx ends. Then it takes no more calls and waits up to grace for those under
// way: nil when they have ended, ErrCut when some had to be cut off, with their contexts cancelled.
// It closes the listener in any case. Any other error says that serving ended by itself.
func Serve(ctx context.Context, server *grpc.Server, listener net.Listener, grace time.Duration) error {
	failed, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		failed <- server.Serve(listener)
	}()
	select {
	case err := <-failed:
		server.Stop()
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	// A server that is stopped before it has begun closes its listener only then.
	defer func() { <-ended }()
	return Stop(server, grace)
}

// Stop has a server take no more calls and waits up to grace for those under way: nil when they
// have ended, ErrCut when some had to be cut off, with their contexts cancelled.
func Stop(server *grpc.Server, grace time.Duration) error {
	stopped := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(stopped)
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-stopped:
		return nil
	case <-timer.C:
		// It does not wait for handlers: one that ignores its context must not hold up the process.
		server.Stop()
		return ErrCut
	}
}
