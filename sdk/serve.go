package sdk

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/millwright-dev/millwright/proto/contract"
	"github.com/millwright-dev/millwright/sdk/socket"
	"github.com/millwright-dev/millwright/transport/mtls"
	"github.com/millwright-dev/millwright/transport/tracing"
)

// Environment variables that Serve reads where Options say nothing.
const (
	// EndpointVariable is Options.Endpoint.
	EndpointVariable = "MILLWRIGHT_ENDPOINT"
	// TLSFolderVariable and TLSClientVariable are Options.TLS.
	TLSFolderVariable = "MILLWRIGHT_TLS_FOLDER"
	TLSClientVariable = "MILLWRIGHT_TLS_CLIENT"
	// TracingVariable is Options.TracingEndpoint.
	TracingVariable = "MILLWRIGHT_TRACING_ENDPOINT"
)

const (
	defaultStopTimeout = 25 * time.Second
	// tracesTimeout is how long the last spans may take to be sent.
	tracesTimeout = 2 * time.Second
	// minPingInterval is how often core may ask whether the connection is alive; gRPC would take 5
	// min for abuse.
	minPingInterval = 5 * time.Second
	// defaultConnectionAge is how long somebody whose certificate was revoked can stay connected.
	defaultConnectionAge = 30 * time.Minute
	// connectionGrace is longer than core waits for any call, unless it is told to.
	connectionGrace = 2 * time.Minute
)

// Options are how a driver is served. The zero value is good.
type Options struct {
	// Endpoint is unix:///absolute/path, or tcp://host:port together with TLS; empty means the
	// environment's MILLWRIGHT_ENDPOINT. A driver that core has started is served where core
	// expects it, whatever stands here.
	Endpoint string
	// TLS secures TCP; the zero value means the environment's MILLWRIGHT_TLS_FOLDER and
	// MILLWRIGHT_TLS_CLIENT.
	TLS TLS
	// Log gets what happens; nil means slog.Default(). It must not write to stdout. Requests and
	// answers are logged at level Debug, redacted.
	Log *slog.Logger
	// StopTimeout bounds how long calls under way may take to end once ctx has; 0 means 25 s.
	StopTimeout time.Duration
	// MaxConnectionAge is how long a connection over TCP lasts: then core connects anew, and shows
	// its certificate again. 0 means 30 min. Calls under way have two minutes to end before it is
	// closed.
	MaxConnectionAge time.Duration
	// Metrics takes millwright_driver_call_duration_seconds, by method and code; nil counts
	// nothing. The driver serves its registry itself, on loopback or where callers are checked.
	Metrics prometheus.Registerer
	// TracingEndpoint is the collector that gets OpenTelemetry spans of calls: see tracing.New.
	// Empty means the environment's MILLWRIGHT_TRACING_ENDPOINT, and if that is empty, too, no
	// spans. A driver finds the span of a call in its context.
	TracingEndpoint string
	// Ready, if set, is called once, as soon as calls are accepted.
	Ready func()
}

// TLS says by which files a driver on TCP shows who it is, and who may call it.
type TLS struct {
	// Folder holds tls.crt, tls.key and ca.crt. They can be replaced while the driver runs: new
	// connections go by what they hold then, and none is older than half an hour.
	Folder string
	// Client is whose certificate a caller has to show: a DNS name or a SPIFFE id.
	Client string
}

// Serve serves driver until ctx ends. Then it takes no more calls and waits up to
// Options.StopTimeout for those under way. It returns nil when they have ended, else an error that
// says that they were cut off. A driver whose Info breaks the contract, or an endpoint that cannot
// be served, is an error at once: socket.ErrInUse among them.
//
// A process that core has started serves on the connection that core has prepared. It is ended by
// core, and ends with it.
func Serve(ctx context.Context, driver Driver, o Options) error {
	id, err := identityOf(driver)
	if err != nil {
		return err
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = defaultStopTimeout
	}
	traces, err := tracing.New(ctx, cmp.Or(o.TracingEndpoint, os.Getenv(TracingVariable)), id.plugin.GetName(), id.plugin.GetVendorVersion(), o.Log)
	if err != nil {
		return fmt.Errorf("%s: %w", TracingVariable, err)
	}
	defer shutDown(ctx, traces, o.Log)
	metrics, err := newCallMetrics(o.Metrics)
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	s := &server{driver: driver, id: id, options: o, traces: traces, metrics: metrics}
	serve := s.listen
	if startedByCore() {
		serve = s.launched
	}
	if err := serve(ctx); err != nil {
		return fmt.Errorf("driver %s: %w", id.plugin.GetName(), err)
	}
	return nil
}

// shutDown sends the last spans.
func shutDown(ctx context.Context, traces *tracing.Provider, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesTimeout)
	defer cancel()
	if err := traces.Shutdown(ctx); err != nil {
		log.WarnContext(ctx, "the last traces are lost", "error", err.Error())
	}
}

// server serves one driver.
type server struct {
	driver  Driver
	id      identity
	options Options
	traces  trace.TracerProvider
	metrics *callMetrics
}

// listen serves on the endpoint.
func (s *server) listen(ctx context.Context) error {
	endpoint, err := s.options.endpoint()
	if err != nil {
		return err
	}
	listener, creds, err := s.options.open(ctx, endpoint)
	if err != nil {
		return err
	}
	var options []grpc.ServerOption
	if listener.Addr().Network() == "tcp" {
		options = append(options, grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: cmp.Or(s.options.MaxConnectionAge, defaultConnectionAge), MaxConnectionAgeGrace: connectionGrace,
		}))
	}
	grpcServer := s.register(ctx, creds, options...)
	serving := health.NewServer()
	healthv1.RegisterHealthServer(grpcServer, serving)
	for service := range grpcServer.GetServiceInfo() {
		serving.SetServingStatus(service, healthv1.HealthCheckResponse_SERVING)
	}
	defer context.AfterFunc(ctx, serving.Shutdown)()
	s.ready(ctx, endpoint)
	return socket.Serve(ctx, grpcServer, listener, s.options.StopTimeout)
}

// ready tells that calls are accepted.
func (s *server) ready(ctx context.Context, endpoint string) {
	s.options.Log.InfoContext(ctx, "serving", "driver", s.id.plugin.GetName(), "version", s.id.plugin.GetVendorVersion(), "endpoint", endpoint)
	if s.options.Ready != nil {
		s.options.Ready()
	}
}

// open listens on an endpoint.
func (o Options) open(ctx context.Context, endpoint string) (net.Listener, credentials.TransportCredentials, error) {
	address, isTCP := strings.CutPrefix(endpoint, "tcp://")
	if !isTCP {
		listener, err := socket.Listen(endpoint)
		return listener, insecure.NewCredentials(), err
	}
	config, err := o.TLS.orEnvironment().config()
	if err != nil {
		return nil, nil, fmt.Errorf("endpoint %q: %w", endpoint, err)
	}
	var l net.ListenConfig
	listener, err := l.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("listen on %s: %w", endpoint, err)
	}
	return listener, credentials.NewTLS(config), nil
}

func (t TLS) orEnvironment() TLS {
	if t == (TLS{}) {
		return TLS{Folder: os.Getenv(TLSFolderVariable), Client: os.Getenv(TLSClientVariable)}
	}
	return t
}

// config reads what the TLS says.
func (t TLS) config() (*tls.Config, error) {
	if t.Folder == "" || t.Client == "" {
		return nil, fmt.Errorf("plaintext TCP is refused because requests hold credentials: set %s to a folder with %s, and %s to whose certificate "+
			"core shows, a DNS name or a SPIFFE id", TLSFolderVariable, mtls.Files, TLSClientVariable)
	}
	client, err := mtls.ParseIdentity(t.Client)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", TLSClientVariable, err)
	}
	config, err := mtls.Server(t.Folder, client)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", TLSFolderVariable, err)
	}
	return config, nil
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

// register returns a gRPC server of the driver. Its streams end with ctx.
func (s *server) register(ctx context.Context, creds credentials.TransportCredentials, more ...grpc.ServerOption) *grpc.Server {
	g := &guard{
		domain:      s.id.plugin.GetName(),
		maxUserData: s.id.capabilities.GetLimits().GetMaxUserDataBytes(),
		log:         s.options.Log,
		metrics:     s.metrics,
	}
	grpcServer := grpc.NewServer(append([]grpc.ServerOption{
		grpc.Creds(creds),
		grpc.MaxRecvMsgSize(contract.MaxMessageBytes),
		grpc.MaxSendMsgSize(contract.MaxMessageBytes),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(tracing.Server(s.traces), g.intercept),
		grpc.ChainStreamInterceptor(endingWith(ctx)),
	}, more...)...)
	register(grpcServer, s.id, s.driver, s.options.Log)
	return grpcServer
}

// endingWith makes streams end with stop: one that watches the health would hold up a graceful stop
// for as long as it likes. The contract itself has no streams.
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

// RecvMsg returns when the stream's time is over, too: handlers wait here.
func (s endingStream) RecvMsg(message any) error {
	received := make(chan error, 1)
	go func() { received <- s.ServerStream.RecvMsg(message) }()
	select {
	case err := <-received:
		return err
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}
