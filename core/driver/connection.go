package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/stats"

	"github.com/millwright-dev/millwright/core/driver/schema"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
	"github.com/millwright-dev/millwright/transport"
)

// session is one connection on which the handshake succeeded. It never reconnects: whoever answers
// next on the same address has to say first who it is.
type session struct {
	conn     *transport.Conn
	identity driverv1alpha1.IdentityServiceClient
	machines driverv1alpha1.MachineServiceClient
	specs    driverv1alpha1.ProviderSpecServiceClient
	caps     Capabilities
	// schema is nil where the driver has none, or, as schemaTrouble says, none that can be used.
	schema        *schema.Schema
	schemaTrouble string
	// calls under way outlive a driver that stops gracefully.
	calls sync.WaitGroup
	// mutations is the context of all of them. It ends when this process may not have any under
	// way; it outlives the connection.
	mutations context.Context
	// cannotList is set when ListMachines turned out to be UNIMPLEMENTED: off until the driver
	// reconnects.
	cannotList atomic.Bool
}

// connected says whether the connection is still there.
func (s *session) connected() bool {
	return s.conn.GetState() == connectivity.Ready
}

// connector opens sessions to one driver.
type connector struct {
	target    Target
	transport transport.Transport
	cfg       Config
	intercept []grpc.UnaryClientInterceptor
}

// connect opens a connection and shakes hands. Errors are for people, and stable while their cause
// lasts.
func (c connector) connect(ctx context.Context) (*session, error) {
	conn, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{
		conn:     conn,
		identity: driverv1alpha1.NewIdentityServiceClient(conn),
		machines: driverv1alpha1.NewMachineServiceClient(conn),
		specs:    driverv1alpha1.NewProviderSpecServiceClient(conn),
	}
	if err := c.shakeHands(ctx, s); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

// open connects once. Who cannot be reached is told in stable words: see notConnected.
func (c connector) open(ctx context.Context) (*transport.Conn, error) {
	conn, err := transport.Connect(ctx, c.transport, c.cfg.Deadlines.Identity,
		grpc.WithChainUnaryInterceptor(c.intercept...), grpc.WithStatsHandler(sentHandler{}))
	if errors.Is(err, transport.ErrAway) {
		return nil, &awayError{cause: err}
	}
	return conn, err
}

// awayError says that nobody answers at a driver's address.
type awayError struct {
	cause error
}

func (e *awayError) Error() string { return notConnected }

func (e *awayError) Unwrap() error { return e.cause }

// shakeHands asks who the driver is and what it can do.
func (c connector) shakeHands(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Deadlines.Identity)
	defer cancel()
	info, err := handshakev1.NewHandshakeServiceClient(s.conn).GetPluginInfo(ctx, &handshakev1.GetPluginInfoRequest{})
	if err != nil {
		return c.failed("handshake", err)
	}
	if violations := contract.CheckAnswer(info); len(violations) > 0 {
		return fmt.Errorf("the driver's handshake breaks the contract: %w", violations)
	}
	if info.GetName() != c.target.Name {
		return fmt.Errorf("the driver configured as %q calls itself %q: correct its name in --driver, or the address", c.target.Name, info.GetName())
	}
	if !slices.Contains(info.GetApiPackages(), contract.DriverPackage) {
		serves := bounded(fmt.Sprint(info.GetApiPackages()), maxMessage)
		return fmt.Errorf("the driver serves %s, core needs %s: upgrade one of them", serves, contract.DriverPackage)
	}
	caps, err := s.identity.GetCapabilities(ctx, &driverv1alpha1.GetCapabilitiesRequest{})
	if err != nil {
		return c.failed("capabilities", err)
	}
	if violations := contract.CheckAnswer(caps); len(violations) > 0 {
		return fmt.Errorf("the driver's capabilities break the contract: %w", violations)
	}
	s.caps = capabilitiesOf(info, caps, c.cfg)
	return c.explainSpec(ctx, s)
}

func (c connector) failed(what string, err error) error {
	return fmt.Errorf("the driver's %s failed: %w", what, classify(c.target.Name, err, true))
}

// probe asks whether the driver can take calls; if not, why not.
func (c connector) probe(ctx context.Context, s *session) string {
	ctx, cancel := context.WithTimeout(ctx, s.caps.Deadlines.Identity)
	defer cancel()
	answer, err := s.identity.Probe(ctx, &driverv1alpha1.ProbeRequest{})
	if err != nil {
		return c.failed("probe", err).Error()
	}
	if answer.GetReady() {
		return ""
	}
	if answer.GetReason() == "" {
		return "the driver is not ready and does not say why"
	}
	return "the driver is not ready: " + bounded(answer.GetReason(), maxMessage)
}

// sentHandler notes which requests may have left core. gRPC reports a request's header once the
// request is with the transport; before that nobody can have seen it.
type sentHandler struct{}

type sentMark struct {
	sent atomic.Bool
}

type sentKey struct{}

// trackSent returns a context for one call, and where to read afterwards whether its request was
// sent.
func trackSent(ctx context.Context) (context.Context, *sentMark) {
	mark := &sentMark{}
	return context.WithValue(ctx, sentKey{}, mark), mark
}

func (sentHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (sentHandler) HandleRPC(ctx context.Context, event stats.RPCStats) {
	_, isHeader := event.(*stats.OutHeader)
	if mark, isTracked := ctx.Value(sentKey{}).(*sentMark); isTracked && isHeader {
		mark.sent.Store(true)
	}
}

func (sentHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (sentHandler) HandleConn(context.Context, stats.ConnStats) {}
