package conformance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/millwright-dev/millwright/proto/contract"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
	"github.com/millwright-dev/millwright/transport"
)

// target is a driver, as it introduced itself, and the cloud behind it.
type target struct {
	way    transport.Transport
	driver *transport.Conn
	// since is when the connection was made.
	since time.Time
	// hooks is the connection to the cloud's hooks; nil where it serves none.
	hooks *grpc.ClientConn
	// wrote is what the driver has written, if the harness has started it: log writes there.
	wrote *record
	log   *slog.Logger

	handshake handshakev1.HandshakeServiceClient
	health    healthv1.HealthClient
	identity  driverv1alpha1.IdentityServiceClient
	machines  driverv1alpha1.MachineServiceClient
	specs     driverv1alpha1.ProviderSpecServiceClient
	// backend is nil where the cloud serves no hooks.
	backend backendv1alpha1.BackendServiceClient

	info         *handshakev1.GetPluginInfoResponse
	capabilities *driverv1alpha1.GetCapabilitiesResponse
	// turns holds as many elements as calls of inTurn are under way, and has room for as many as
	// the driver takes.
	turns chan struct{}
}

// connect reaches the driver and asks who it is. The caller closes the target.
func connect(ctx context.Context, c Config) (*target, error) {
	t := &target{wrote: &record{also: c.Output}}
	t.log = slog.New(slog.NewTextHandler(t.wrote, nil))
	var err error
	if t.way, err = transport.Parse(c.Endpoint, transport.Options{Eager: true, Log: t.log}); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	if err := t.reach(ctx); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	if c.Backend != "" {
		if t.hooks, err = grpc.NewClient(c.Backend, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
			t.close()
			return nil, fmt.Errorf("backend: %w", err)
		}
		t.backend = backendv1alpha1.NewBackendServiceClient(t.hooks)
	}
	if err := t.introduce(ctx); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

const (
	// comeBack is how long a driver may take to be there, or there again.
	comeBack = 30 * time.Second
	// connectionLife is after how long a check begins on a new connection. The SDK's drivers close
	// one over TCP after 27 minutes at the earliest: no check takes what is left.
	connectionLife = 10 * time.Minute
)

// reach connects as core does, unless the connection is there and young. It waits for a driver that
// is not there yet. One that was started for its connection is not started again for its age.
func (t *target) reach(ctx context.Context) error {
	if t.driver != nil {
		isYoung := t.driver.Process() != nil || time.Since(t.since) < connectionLife
		if isYoung && t.driver.GetState() == connectivity.Ready {
			return nil
		}
		_ = t.driver.Close()
	}
	for began := time.Now(); ; {
		conn, err := transport.Connect(ctx, t.way, contract.DefaultIdentityDeadline, grpc.WithChainUnaryInterceptor(t.judge))
		if err == nil {
			t.use(conn)
			return nil
		}
		if !errors.Is(err, transport.ErrAway) || time.Since(began) > comeBack {
			return err
		}
		select {
		case <-time.After(shortestPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// use has calls made on a connection.
func (t *target) use(conn *transport.Conn) {
	t.driver, t.since = conn, time.Now()
	t.handshake, t.health = handshakev1.NewHandshakeServiceClient(conn), healthv1.NewHealthClient(conn)
	t.identity, t.machines = driverv1alpha1.NewIdentityServiceClient(conn), driverv1alpha1.NewMachineServiceClient(conn)
	t.specs = driverv1alpha1.NewProviderSpecServiceClient(conn)
}

// introduce asks the driver, and the cloud if there are hooks, who they are.
func (t *target) introduce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, contract.DefaultIdentityDeadline)
	defer cancel()
	var err error
	if t.info, err = t.handshake.GetPluginInfo(ctx, pluginInfoRequest()); err != nil {
		return fmt.Errorf("ask the driver who it is: %w", err)
	}
	if t.capabilities, err = t.identity.GetCapabilities(ctx, &driverv1alpha1.GetCapabilitiesRequest{}); err != nil {
		return fmt.Errorf("ask the driver what it can do: %w", err)
	}
	t.turns = make(chan struct{}, t.maxRequests())
	if t.backend != nil {
		if _, err := t.backend.GetBackendInfo(ctx, &backendv1alpha1.GetBackendInfoRequest{}, grpc.WaitForReady(true)); err != nil {
			return fmt.Errorf("ask the cloud's hooks who they are: %w", err)
		}
	}
	return nil
}

func (t *target) close() {
	if t.driver != nil {
		_ = t.driver.Close()
	}
	if t.hooks != nil {
		_ = t.hooks.Close()
	}
}

// judge holds each call and its answer against the contract, for the check that makes it.
//
//nolint:revive // gRPC decides how many parameters an interceptor has
func (t *target) judge(
	ctx context.Context, method string, request, answer any,
	conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if _, limited := ctx.Deadline(); !limited {
		// Nobody waits for a driver for ever: not longer than core waits for its slowest call.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, contract.DefaultListPageDeadline)
		defer cancel()
	}
	err := invoke(ctx, method, request, answer, conn, options...)
	check := trialOf(ctx)
	if check == nil || err != nil && ctx.Err() != nil {
		return err
	}
	if check.heard != nil {
		check.heard(answer, err)
	}
	for _, breach := range contract.CheckExchange(contract.Exchange{
		Driver: t.info.GetName(), ProviderIDPrefix: t.capabilities.GetProviderIdPrefix(), Request: request, Answer: answer, Err: err,
	}) {
		check.errorf("%s: %s", method, breach)
	}
	return err
}

// has says whether the driver announces a feature. Every driver has UNSPECIFIED.
func (t *target) has(feature driverv1alpha1.Feature) bool {
	if feature == driverv1alpha1.Feature_FEATURE_UNSPECIFIED {
		return true
	}
	return slices.Contains(t.capabilities.GetFeatures(), feature)
}

// deadlines are how long core would wait for this driver.
func (t *target) deadlines() (status, mutation, page time.Duration) {
	of := func(set interface{ AsDuration() time.Duration }, or time.Duration) time.Duration {
		if d := set.AsDuration(); d > 0 {
			return d
		}
		return or
	}
	d := t.capabilities.GetLimits().GetDeadlines()
	return of(d.GetStatus(), contract.DefaultStatusDeadline), of(d.GetMutation(), contract.DefaultMutationDeadline),
		of(d.GetListPage(), contract.DefaultListPageDeadline)
}

// maxRequests is how many requests of MachineService the driver takes at once.
func (t *target) maxRequests() int {
	if n := t.capabilities.GetLimits().GetMaxConcurrentRequests(); n > 0 {
		return int(n)
	}
	return contract.DefaultMaxConcurrentRequests
}

// inTurn has call make one request as soon as fewer than maxRequests are under way in this manner,
// and returns how long that took.
func (t *target) inTurn(call func()) (queued time.Duration) {
	began := time.Now()
	t.turns <- struct{}{}
	defer func() { <-t.turns }()
	queued = time.Since(began)
	call()
	return queued
}

// maxUserData is how many bytes of user data the driver takes.
func (t *target) maxUserData() int {
	if n := t.capabilities.GetLimits().GetMaxUserDataBytes(); n > 0 {
		return int(n)
	}
	return contract.DefaultMaxUserDataBytes
}
