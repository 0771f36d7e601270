package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/millwright-dev/millwright/proto/contract"
	"github.com/millwright-dev/millwright/sdk/socket"
)

// EndpointVariable is the environment variable that Serve reads where Options.Endpoint is empty.
const EndpointVariable = "MILLWRIGHT_ENDPOINT"

const (
	defaultStopTimeout = 25 * time.Second
	// minPingInterval is how often core may ask whether the connection is alive; gRPC would take 5 min for abuse.
	minPingInterval = 5 * time.Second
)

// Options are how a driver is served. The zero value is good.
type Options struct {
	// Endpoint is unix:///absolute/path; empty means the environment's MILLWRIGHT_ENDPOINT.
	Endpoint string
	// Log gets what happens; nil means slog.Default(). It must not write to stdout. Requests and answers are logged at
	// level Debug, redacted.
	Log *slog.Logger
	// StopTimeout bounds how long calls under way may take to end once ctx has; 0 means 25 s.
	StopTimeout time.Duration
	// Ready, if set, is called once, as soon as calls are accepted.
	Ready func()
}

// Serve serves driver until ctx ends. Then it takes no more calls, waits up to Options.StopTimeout for those under way,
// and returns nil when they have ended, else an error that says that they were cut off. A driver whose Info breaks the
// contract, or an endpoint that cannot be served, is an error at once: socket.ErrInUse among them.
func Serve(ctx context.Context, driver Driver, o Options) error {
	id, err := identityOf(driver)
	if err != nil {
		return err
	}
	endpoint, err := o.endpoint()
	if err != nil {
		return err
	}
	listener, err := socket.Listen(endpoint)
	if err != nil {
		return err
	}
	log := o.Log
	if log == nil {
		log = slog.Default()
	}
	server, serving := newServer(ctx, driver, id, log)
	defer context.AfterFunc(ctx, serving.Shutdown)()
	name := id.plugin.GetName()
	log.InfoContext(ctx, "serving", "driver", name, "version", id.plugin.GetVendorVersion(), "endpoint", endpoint)
	if o.Ready != nil {
		o.Ready()
	}
	timeout := o.StopTimeout
	if timeout == 0 {
		timeout = defaultStopTimeout
	}
	if err := socket.Serve(ctx, server, listener, timeout); err != nil {
		return fmt.Errorf("driver %s: %w", name, err)
	}
	return nil
}

func (o Options) endpoint() (string, error) {
	if o.Endpoint != "" {
		return o.Endpoint, nil
	}
	if endpoint := os.Getenv(EndpointVariable); endpoint != "" {
		return endpoint, nil
	}
	return "", errors.New("no endpoint: set --endpoint or " + EndpointVariable + " to unix:///absolute/path")
}

// newServer returns a server of driver, and the health that it tells. Streams end with ctx.
func newServer(ctx context.Context, driver Driver, id identity, log *slog.Logger) (*grpc.Server, *health.Server) {
	g := &guard{
		domain:      id.plugin.GetName(),
		maxUserData: id.capabilities.GetLimits().GetMaxUserDataBytes(),
		log:         log,
	}
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(contract.MaxMessageBytes),
		grpc.MaxSendMsgSize(contract.MaxMessageBytes),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(g.intercept),
		grpc.ChainStreamInterceptor(endingWith(ctx)),
	)
	register(server, id, driver)
	serving := health.NewServer()
	healthv1.RegisterHealthServer(server, serving)
	for service := range server.GetServiceInfo() {
		serving.SetServingStatus(service, healthv1.HealthCheckResponse_SERVING)
	}
	return server, serving
}

// endingWith makes streams end with stop: one that watches the health would hold up a graceful stop for as long as it
// likes. The contract itself has no streams.
func endingWith(stop context.Context) grpc.StreamServerInterceptor {
	return func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx, cancel := context.WithCancel(stream.Context())
		defer cancel()
		defer context.AfterFunc(stop, cancel)()
		return handler(server, endingStream{ServerStream: stream, ctx: ctx})
	}
}

type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s endingStream) Context() context.Context { return s.ctx }
