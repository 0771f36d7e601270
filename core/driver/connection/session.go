package connection

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

	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/messages"
	"github.com/millwright-dev/millwright/core/providerspec"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
	"github.com/millwright-dev/millwright/transport"
)

// Session is one connection on which the handshake succeeded. It never reconnects: whoever answers
// next on the same address has to say first who it is.
type Session struct {
	// Machines and Specs are the driver's services. Call them by Call.
	Machines driverv1alpha1.MachineServiceClient
	Specs    driverv1alpha1.ProviderSpecServiceClient
	// Capabilities are what the driver said of itself.
	Capabilities Capabilities
	// Schema is what the driver's specs look like.
	Schema *providerspec.Schema
	// Mutations is the context of all of them. It ends when this process may not have any under
	// way; it outlives the connection.
	Mutations context.Context

	cfg      Config
	conn     *transport.Conn
	identity driverv1alpha1.IdentityServiceClient
	// calls under way outlive a driver that stops gracefully.
	calls sync.WaitGroup
	// cannotList is set when ListMachines turned out to be UNIMPLEMENTED.
	cannotList atomic.Bool
}

// Meta is what the next request says of itself.
func (s *Session) Meta() *driverv1alpha1.RequestMeta {
	return wire.Meta(s.cfg.ClusterUID, s.cfg.LeaderEpoch())
}

// Reader reads the driver's answers.
func (s *Session) Reader() wire.Reader {
	return wire.Reader{Driver: s.cfg.Name, ClusterUID: s.cfg.ClusterUID, Prefix: s.Capabilities.ProviderIDPrefix}
}

// Call makes a call, as long as ctx allows. The failure is of class Unavailable where the request
// never left core.
func (s *Session) Call(ctx context.Context, call func(context.Context) error) *instance.Failure {
	ctx, request := trackSent(ctx)
	if err := call(ctx); err != nil {
		return s.Reader().Failure(err, request.sent.Load())
	}
	return nil
}

// Release ends what Connection.Acquire began.
func (s *Session) Release() { s.calls.Done() }

// Go calls f in the background. The connection stays open until it returns. Call it before Release.
func (s *Session) Go(f func()) { s.calls.Go(f) }

// CanList says whether the driver has ListMachines.
func (s *Session) CanList() bool {
	return s.Capabilities.Has(driverv1alpha1.Feature_FEATURE_LIST) && !s.cannotList.Load()
}

// DisableList records that ListMachines is UNIMPLEMENTED: off until the driver reconnects.
func (s *Session) DisableList() { s.cannotList.Store(true) }

// isConnected says whether the connection is still there.
func (s *Session) isConnected() bool { return s.conn.GetState() == connectivity.Ready }

// connect opens a connection and shakes hands. Errors are for people, and stable while their cause
// lasts.
func (c *Connection) connect(ctx context.Context) (*Session, error) {
	conn, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	s := NewSession(c.cfg, conn)
	if err := s.shakeHands(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

// NewSession returns a session whose handshake is still to come.
func NewSession(cfg Config, conn *transport.Conn) *Session {
	return &Session{
		cfg:      cfg,
		conn:     conn,
		identity: driverv1alpha1.NewIdentityServiceClient(conn),
		Machines: driverv1alpha1.NewMachineServiceClient(conn),
		Specs:    driverv1alpha1.NewProviderSpecServiceClient(conn),
	}
}

// open connects once. Who cannot be reached is told in stable words: see NotConnected.
func (c *Connection) open(ctx context.Context) (*transport.Conn, error) {
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

func (e *awayError) Error() string { return NotConnected }

func (e *awayError) Unwrap() error { return e.cause }

// shakeHands asks who the driver is and what it can do.
func (s *Session) shakeHands(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Deadlines.Identity)
	defer cancel()
	info, err := handshakev1.NewHandshakeServiceClient(s.conn).GetPluginInfo(ctx, &handshakev1.GetPluginInfoRequest{
		CoreVersion: s.cfg.Version, ContractRevision: contract.Revision,
	})
	if err != nil {
		return s.failed("handshake", err)
	}
	if violations := contract.CheckAnswer(info); len(violations) > 0 {
		return fmt.Errorf("the driver's handshake breaks the contract: %w", violations)
	}
	if info.GetName() != s.cfg.Name {
		return fmt.Errorf("the driver configured as %q calls itself %q: correct its name in --driver, or the address", s.cfg.Name, info.GetName())
	}
	if !slices.Contains(info.GetApiPackages(), contract.DriverPackage) {
		serves := messages.OneLine(fmt.Sprint(info.GetApiPackages()), wire.MaxMessage)
		return fmt.Errorf("the driver serves %s, core needs %s: upgrade one of them", serves, contract.DriverPackage)
	}
	if err := contract.CheckRevision(info.GetContractRevision()); err != nil {
		return fmt.Errorf("the driver %s %s cannot be used: %w", s.cfg.Name, messages.OneLine(info.GetVendorVersion(), wire.MaxReason), err)
	}
	caps, err := s.identity.GetCapabilities(ctx, &driverv1alpha1.GetCapabilitiesRequest{})
	if err != nil {
		return s.failed("capabilities", err)
	}
	if violations := contract.CheckAnswer(caps); len(violations) > 0 {
		return fmt.Errorf("the driver's capabilities break the contract: %w", violations)
	}
	s.Capabilities = capabilitiesOf(info, caps, s.cfg)
	return s.readSchema(ctx)
}

// readSchema reads the driver's schema, where it has one that can be used.
func (s *Session) readSchema(ctx context.Context) error {
	s.Schema = providerspec.NoSchema("the driver publishes no schema")
	if !s.Capabilities.Has(driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_SCHEMA) {
		return nil
	}
	answer, err := s.Specs.GetProviderSpecSchema(ctx, &driverv1alpha1.GetProviderSpecSchemaRequest{})
	if err != nil {
		failure := wire.Classify(s.cfg.Name, err, true)
		if failure.Class == instance.Unimplemented {
			return nil
		}
		return fmt.Errorf("the driver's schema: %w", failure)
	}
	if s.Schema, err = providerspec.Compile(answer.GetJsonSchema()); err != nil {
		s.Schema = providerspec.NoSchema(messages.OneLine("the driver's schema cannot be used: "+err.Error(), wire.MaxMessage))
	}
	return nil
}

func (s *Session) failed(what string, err error) error {
	return fmt.Errorf("the driver's %s failed: %w", what, wire.Classify(s.cfg.Name, err, true))
}

// probe asks whether the driver can take calls; if not, why not.
func (s *Session) probe(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, s.Capabilities.Deadlines.Identity)
	defer cancel()
	answer, err := s.identity.Probe(ctx, &driverv1alpha1.ProbeRequest{})
	if err != nil {
		return s.failed("probe", err).Error()
	}
	if answer.GetReady() {
		return ""
	}
	if answer.GetReason() == "" {
		return "the driver is not ready and does not say why"
	}
	return "the driver is not ready: " + messages.OneLine(answer.GetReason(), wire.MaxMessage)
}

// sentHandler notes which requests may have left core. It waits for gRPC to report the
// request's header. By then the request is with the transport; before that nobody can have seen
// it.
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
