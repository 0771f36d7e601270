package connection

import (
	"context"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"k8s.io/utils/clock"

	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
	"github.com/millwright-dev/millwright/transport"
)

const (
	driverName = "sawmill"
	patience   = 20 * time.Second
)

func testConfig() Config {
	return Config{
		Name: driverName, ClusterUID: "cluster-1", LeaderEpoch: func() int64 { return 1 }, MaxConcurrentRequests: 64, CreateSettle: contract.DefaultCreateSettle,
		Deadlines: Deadlines{
			Identity: contract.DefaultIdentityDeadline, Status: contract.DefaultStatusDeadline,
			Mutation: contract.DefaultMutationDeadline, ListPage: contract.DefaultListPageDeadline,
		},
		ReconnectDelay: time.Millisecond, ProbeInterval: 10 * time.Second, Clock: clock.RealClock{}, Log: logr.Discard(),
		Meter: func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return invoke(ctx, method, req, reply, cc, opts...)
		},
		Tracing: noop.NewTracerProvider(),
	}
}

// answering is a driver that says who it is, and notes whether a create reaches it.
type answering struct {
	driverv1alpha1.UnimplementedIdentityServiceServer
	driverv1alpha1.UnimplementedMachineServiceServer
	handshakev1.UnimplementedHandshakeServiceServer
	name     string
	revision int32
	called   atomic.Bool
}

func (a *answering) GetPluginInfo(context.Context, *handshakev1.GetPluginInfoRequest) (*handshakev1.GetPluginInfoResponse, error) {
	return &handshakev1.GetPluginInfoResponse{Name: a.name, VendorVersion: "v1", ApiPackages: []string{contract.DriverPackage}, ContractRevision: a.revision}, nil
}

func (a *answering) GetCapabilities(context.Context, *driverv1alpha1.GetCapabilitiesRequest) (*driverv1alpha1.GetCapabilitiesResponse, error) {
	return &driverv1alpha1.GetCapabilitiesResponse{Limits: &driverv1alpha1.Limits{}, ProviderIdPrefix: "sawmill:///"}, nil
}

func (a *answering) Probe(context.Context, *driverv1alpha1.ProbeRequest) (*driverv1alpha1.ProbeResponse, error) {
	return &driverv1alpha1.ProbeResponse{Ready: true}, nil
}

func (a *answering) CreateMachine(context.Context, *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
	a.called.Store(true)
	return nil, nil
}

// serve serves a on path until the test or stop ends it.
func (a *answering) serve(t *testing.T, path string) *grpc.Server {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	handshakev1.RegisterHandshakeServiceServer(server, a)
	driverv1alpha1.RegisterIdentityServiceServer(server, a)
	driverv1alpha1.RegisterMachineServiceServer(server, a)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return server
}

// nobody uses a connection.
type nobody struct{}

func (nobody) Tried(error) {}

func (nobody) StatusChanged() {}

func (nobody) ReadinessChanged(string) {}

func (nobody) Serve(ctx context.Context, _ *Session) { <-ctx.Done() }

// to returns a connection to whoever serves at path.
func to(t *testing.T, path string, client Client) *Connection {
	t.Helper()
	cfg := testConfig()
	cfg.Address = "unix://" + path
	c, err := New(cfg, client)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWithoutAConnectionNothingLeaves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.sock")
	server := (&answering{name: driverName}).serve(t, path)
	s, err := to(t, path, nobody{}).connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.conn.Close() })
	server.Stop()
	s.conn.WaitForStateChange(t.Context(), connectivity.Ready)
	// Another driver at the same address is not spoken to on the old connection.
	stranger := &answering{name: driverName}
	stranger.serve(t, path)
	failure := s.Call(t.Context(), func(ctx context.Context) error {
		_, err := s.Machines.CreateMachine(ctx, &driverv1alpha1.CreateMachineRequest{})
		return err
	})
	if failure == nil || failure.Class != instance.Unavailable || stranger.called.Load() {
		t.Fatalf("failure %v, called %t; want Unavailable and nothing sent", failure, stranger.called.Load())
	}
}

// changes notes readiness as it is told, and what Acquire says then.
type changes struct {
	nobody
	told chan string
}

func (c changes) ReadinessChanged(why string) { c.told <- why }

func TestSessionCanBeAcquiredOnceTheDriverIsReady(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.sock")
	client := changes{told: make(chan string, 10)}
	c := to(t, path, client)
	if _, why := c.Acquire(); why != NotConnected || c.Last() != nil {
		t.Errorf("before the driver is there: %q", why)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx, context.Background())
	}()
	server := (&answering{name: driverName}).serve(t, path)
	if why := <-client.told; why != "" {
		t.Fatalf("ready: %q", why)
	}
	s, why := c.Acquire()
	if why != "" || s != c.Last() || c.Unready() != "" {
		t.Fatalf("of a driver that is ready: %q, %q", why, c.Unready())
	}
	server.Stop()
	if why := <-client.told; why != NotConnected {
		t.Errorf("away: %q", why)
	}
	if _, why := c.Acquire(); why != NotConnected || c.Last() != s {
		t.Errorf("after the driver went: %q", why)
	}
	stop()
	select {
	case <-ended:
		t.Error("Run returned while a call was under way")
	default:
	}
	s.Release()
	<-ended
}

// pausing is a transport that every other time does not try.
type pausing struct {
	transport.Transport
	opened atomic.Int64
}

func (p *pausing) Open(ctx context.Context) (*transport.Wire, error) {
	if p.opened.Add(1)%2 == 0 {
		return nil, transport.ErrPaused
	}
	return p.Transport.Open(ctx)
}

// A driver that ends whenever it is refused is started ever later. What it was refused for stays.
func TestWhileADriverIsNotStartedTheReasonStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.sock")
	(&answering{name: "other"}).serve(t, path)
	c := to(t, path, nobody{})
	way := &pausing{Transport: c.transport}
	c.transport = way
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx, ctx)
	}()
	refused := ""
	for deadline := time.Now().Add(patience); way.opened.Load() < 20; {
		switch why := c.Unready(); {
		case strings.Contains(why, "calls itself"):
			refused = why
		case refused != "":
			t.Fatalf("after %q it says %q", refused, why)
		}
		if time.Now().After(deadline) {
			t.Fatalf("it was tried %d times", way.opened.Load())
		}
		runtime.Gosched()
	}
	if refused == "" {
		t.Error("nobody says why it is refused")
	}
	stop()
	<-ended
}

// A driver of a revision that is too far away is refused by name; one of a neighbour is not.
func TestRevisionsThatDoNotWorkTogetherAreRefused(t *testing.T) {
	for revision, want := range map[int32]string{
		0: "", contract.Revision: "", contract.Revision + 1: "",
		contract.Revision + 2: "the driver sawmill v1 cannot be used: it is of revision 4 of the contract, this side of 2, and only neighbours work together: upgrade the older one",
	} {
		path := filepath.Join(t.TempDir(), "d.sock")
		(&answering{name: driverName, revision: revision}).serve(t, path)
		s, err := to(t, path, nobody{}).connect(t.Context())
		if err == nil {
			t.Cleanup(func() { _ = s.conn.Close() })
		}
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("revision %d: %v, want %q", revision, err, want)
		}
	}
}
