// Package connection keeps a driver connected: it opens connections, shakes hands, reads what the
// driver can do, probes whether it is ready, and connects anew when it is lost.
//
// Read reconnect.go first; session.go is one connection from its handshake on.
package connection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/millwright-dev/millwright/core/driverstatus"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/proto/redact"
	"github.com/millwright-dev/millwright/transport"
	"github.com/millwright-dev/millwright/transport/tracing"
)

// NotConnected is all that machines are told of a driver that is away: its cause is for the log,
// since that changes while a driver restarts, and each change would be a write to every machine.
const NotConnected = "the driver is not connected"

// Config is what a connection needs to know. All fields but Version are required.
type Config struct {
	// Name is what the driver must call itself, Address where it is: see transport.Parse.
	Name, Address string
	// Version is core's own, which the driver is told. It may be empty.
	Version string
	// ClusterUID and LeaderEpoch go with each request.
	ClusterUID  string
	LeaderEpoch func() int64
	// Deadlines, MaxConcurrentRequests and CreateSettle hold where the driver sets none of its own.
	Deadlines             Deadlines
	MaxConcurrentRequests int
	CreateSettle          time.Duration
	// ReconnectDelay lies between two attempts to reach the driver, ProbeInterval between two
	// probes.
	ReconnectDelay, ProbeInterval time.Duration
	Clock                         clock.WithTicker
	Log                           logr.Logger
	// Meter is told of each call once its answer holds no secrets any more.
	Meter   grpc.UnaryClientInterceptor
	Tracing trace.TracerProvider
}

// Client is who uses a connection. Serve aside, its methods must return soon.
type Client interface {
	// Tried is told of each attempt to connect; err is nil where the handshake succeeded.
	Tried(err error)
	// StatusChanged is told that what Status returns has changed.
	StatusChanged()
	// ReadinessChanged is told why the driver takes no calls any more; empty for that it does.
	ReadinessChanged(why string)
	// Serve uses a session until ctx ends with the connection. The driver may not be ready yet.
	Serve(ctx context.Context, s *Session)
}

// Connection keeps one driver connected. Its methods are safe for use by several goroutines.
type Connection struct {
	cfg       Config
	client    Client
	transport transport.Transport
	intercept []grpc.UnaryClientInterceptor

	mu sync.Mutex
	// session is nil while the driver is away; last is the latest that there was. The text why
	// says why the driver takes no calls, empty when it does. The field since is from when on
	// it has, or has not.
	session, last *Session
	why           string
	since         time.Time
}

// New returns the connection to a driver that is away still. An error says what is wrong with its
// address.
func New(cfg Config, client Client) (*Connection, error) {
	told := &redact.Memory{}
	way, err := transport.Parse(cfg.Address, transport.Options{
		Log: slog.New(logr.ToSlogHandler(cfg.Log)), Clean: func(text string) string { return told.Of(nil).Text(text) },
	})
	if err != nil {
		return nil, err
	}
	return &Connection{
		cfg: cfg, client: client, transport: way, why: NotConnected, since: cfg.Clock.Now(),
		intercept: []grpc.UnaryClientInterceptor{redacting(told, cfg.Meter), tracing.Client(cfg.Tracing, cfg.Name)},
	}, nil
}

// Acquire returns the session to call by. Its connection stays open until Session.Release. If
// the driver takes no calls now, Acquire returns why, for people and in stable words.
func (c *Connection) Acquire() (s *Session, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if why := c.unready(); why != "" {
		return nil, why
	}
	c.session.calls.Add(1)
	return c.session, ""
}

// Unready says why the driver takes no calls now; empty when it does.
func (c *Connection) Unready() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unready()
}

// unready is Unready with the lock held.
func (c *Connection) unready() string {
	// A connection that broke without serve having noticed yet: serve will, and tells the client.
	if c.why == "" && !c.session.isConnected() {
		return NotConnected
	}
	return c.why
}

// Last returns the latest session, which may be closed; nil where there was none yet.
func (c *Connection) Last() *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// Capabilities are what the driver said of itself when it was last reached.
func (c *Connection) Capabilities() Capabilities {
	if last := c.Last(); last != nil {
		return last.Capabilities
	}
	return capabilitiesOf(nil, nil, c.cfg)
}

// Status tells how the driver is doing.
func (c *Connection) Status() driverstatus.Driver {
	c.mu.Lock()
	defer c.mu.Unlock()
	address, _, _ := strings.Cut(c.cfg.Address, "?")
	status := driverstatus.Driver{
		Name: c.cfg.Name, Address: address, Ready: c.why == "", Since: metav1.NewTime(c.since), Reason: c.why,
	}
	if c.last == nil {
		return status
	}
	caps := c.last.Capabilities
	status.Version, status.MaxConcurrentRequests = caps.VendorVersion, caps.MaxConcurrentRequests
	for _, feature := range caps.Features {
		status.Features = append(status.Features, strings.TrimPrefix(driverv1alpha1.Feature_name[int32(feature)], "FEATURE_"))
	}
	return status
}

// Run keeps the driver connected until ctx ends, and returns when the last call has ended. The
// context of mutations outlives ctx.
func (c *Connection) Run(ctx, mutations context.Context) {
	var closing sync.WaitGroup
	defer closing.Wait()
	for ctx.Err() == nil {
		s, err := c.connect(ctx)
		if errors.Is(err, transport.ErrPaused) {
			c.pause(ctx)
			continue
		}
		c.client.Tried(err)
		if err != nil {
			c.detach(err.Error(), errors.Unwrap(err))
			c.pause(ctx)
			continue
		}
		s.Mutations = mutations
		c.serve(ctx, s)
		closing.Go(func() {
			s.calls.Wait()
			// Whatever closing it says, nothing uses the connection any more.
			_ = s.conn.Close()
		})
	}
	c.detach("this process is shutting down", nil)
}

func (c *Connection) pause(ctx context.Context) {
	timer := c.cfg.Clock.NewTimer(c.cfg.ReconnectDelay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// serve uses a session until its connection or ctx ends.
func (c *Connection) serve(ctx context.Context, s *Session) {
	ctx, lost := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer lost()
	parts.Go(func() {
		s.conn.Lost(ctx)
		lost()
	})
	c.attach(s)
	defer c.detach(NotConnected, nil)
	parts.Go(func() { c.client.Serve(ctx, s) })
	probes := c.cfg.Clock.NewTicker(c.cfg.ProbeInterval)
	defer probes.Stop()
	for {
		why := s.probe(ctx)
		if ctx.Err() != nil {
			return
		}
		c.setReady(why)
		select {
		case <-ctx.Done():
			return
		case <-probes.C():
		}
	}
}

// attach makes a session the current one. It is not ready before its first probe.
func (c *Connection) attach(s *Session) {
	c.cfg.Log.Info("driver connected", "version", s.Capabilities.VendorVersion, "features", s.Capabilities.Features, "manifest", s.Capabilities.Manifest)
	c.mu.Lock()
	c.session, c.last = s, s
	c.mu.Unlock()
	c.client.StatusChanged()
}

// setReady records what a probe said.
func (c *Connection) setReady(why string) {
	if !c.become(why, false) {
		return
	}
	if why != "" {
		c.cfg.Log.Info("driver is not ready", "why", why)
		return
	}
	c.cfg.Log.Info("driver is ready")
}

// detach records that there is no session, and why; cause is for the log.
func (c *Connection) detach(why string, cause error) {
	if c.become(why, true) {
		c.cfg.Log.Info("driver is away", "why", why, "cause", fmt.Sprint(cause))
	}
}

// become records why the driver takes no calls, empty for that it does, and tells the client. It
// returns false where that is no news.
func (c *Connection) become(why string, away bool) bool {
	c.mu.Lock()
	if away {
		c.session = nil
	}
	was := c.why
	if (was == "") != (why == "") {
		c.since = c.cfg.Clock.Now()
	}
	c.why = why
	c.mu.Unlock()
	if was == why {
		return false
	}
	c.client.ReadinessChanged(why)
	c.client.StatusChanged()
	return true
}
