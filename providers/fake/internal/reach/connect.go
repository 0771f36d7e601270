package reach

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/millwright-dev/millwright/proto/contract"
	"github.com/millwright-dev/millwright/providers/fake/cloud"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/socket"
)

// Target says where the cloud is.
type Target struct {
	// Endpoint is where it serves, as unix:///path; empty: a new one in this process.
	Endpoint string
	// Hooks is where the hooks of the one in this process are served; empty: nowhere.
	Hooks string
}

// maxReconnectDelay is how long it takes at most to notice that a cloud is back.
const maxReconnectDelay = 2 * time.Second

// grace bounds how long the hooks' calls may take to finish.
const grace = time.Second

// Cloud returns a client of the cloud, and a function that ends what this began. A cloud that is
// away is no error: calls fail until it is back.
func Cloud(ctx context.Context, log *slog.Logger, target Target) (fakecloudv1alpha1.CloudServiceClient, func(), error) {
	if target.Endpoint == "" {
		return own(ctx, log, target.Hooks)
	}
	if target.Hooks != "" {
		return nil, nil, errors.New("--backend-listen is for a cloud in this process, and --cloud names another")
	}
	if _, err := socket.Path(target.Endpoint); err != nil {
		return nil, nil, fmt.Errorf("--cloud: %w", err)
	}
	conn, err := connect(target.Endpoint)
	if err != nil {
		return nil, nil, err
	}
	return fakecloudv1alpha1.NewCloudServiceClient(conn), func() { conn.Close() }, nil
}

// own starts a cloud in this process. A driver has to talk to it as to any other, so it does over a
// connection.
func own(ctx context.Context, log *slog.Logger, hooks string) (fakecloudv1alpha1.CloudServiceClient, func(), error) {
	c, err := cloud.Open(cloud.Options{Log: log})
	if err != nil {
		return nil, nil, err
	}
	if err := serveHooks(ctx, log, c, hooks); err != nil {
		return nil, nil, err
	}
	listener := bufconn.Listen(contract.MaxMessageBytes)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(contract.MaxMessageBytes))
	c.Register(server)
	go func() { _ = server.Serve(listener) }()
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	conn, err := connect("passthrough:///cloud", grpc.WithContextDialer(dial))
	if err != nil {
		server.Stop()
		return nil, nil, err
	}
	return fakecloudv1alpha1.NewCloudServiceClient(conn), func() {
		_ = c.Close()
		conn.Close()
		server.Stop()
	}, nil
}

func serveHooks(ctx context.Context, log *slog.Logger, c *cloud.Cloud, endpoint string) error {
	if endpoint == "" {
		return nil
	}
	listener, err := socket.Listen(endpoint)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	c.RegisterHooks(server)
	go func() {
		if err := socket.Serve(ctx, server, listener, grace); err != nil {
			log.Error("hooks of the cloud ended", "error", err)
		}
	}()
	return nil
}

// connect returns a connection that is never idle and takes long lists.
func connect(target string, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(target, append(more,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDisableRetry(),
		grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{
			BaseDelay: 100 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: maxReconnectDelay,
		}, MinConnectTimeout: maxReconnectDelay}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(contract.MaxMessageBytes)),
	)...)
	if err != nil {
		return nil, fmt.Errorf("connect to the cloud: %w", err)
	}
	return conn, nil
}
