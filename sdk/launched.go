package sdk

import (
	"context"
	"errors"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/millwright-dev/millwright/sdk/socket"
	"github.com/millwright-dev/millwright/transport/launch"
)

// startedByCore says whether core has started this process, to be served over go-plugin.
func startedByCore() bool {
	return os.Getenv(launch.Handshake.MagicCookieKey) == launch.Handshake.MagicCookieValue
}

// launched serves where core waits, which go-plugin tells it on stdout. It answers for health
// itself, under its own name alone.
func (s *server) launched(ctx context.Context) error {
	stopped := make(chan error, 1)
	began := false
	config := &plugin.ServeConfig{
		HandshakeConfig: launch.Handshake,
		Plugins:         launch.Plugins(),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			began = true
			grpcServer := s.register(ctx, nil, options...)
			context.AfterFunc(ctx, func() { stopped <- socket.Stop(grpcServer, s.options.StopTimeout) })
			s.ready(ctx, "started by core")
			return grpcServer
		},
		// Of its own it tells only what keeps it from serving.
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: os.Stderr, JSONFormat: true}),
	}
	plugin.Serve(config)
	if ctx.Err() != nil && began {
		return <-stopped
	}
	if !began {
		return errors.New("it could not be served for core: the line before says why")
	}
	return nil
}
