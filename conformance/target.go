package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/millwright-dev/millwright/proto/contract"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
)

// target is a driver, as it introduced itself, and the cloud behind it.
type target struct {
	driver, cloud *grpc.ClientConn

	handshake handshakev1.HandshakeServiceClient
	health    healthv1.HealthClient
	identity  driverv1alpha1.IdentityServiceClient
	machines  driverv1alpha1.MachineServiceClient
	specs     driverv1alpha1.ProviderSpecServiceClient
	// backend is nil where the cloud serves no hooks.
	backend backendv1alpha1.BackendServiceClient

	info         *handshakev1.GetPluginInfoResponse
	capabilities *driverv1alpha1.GetCapabilitiesResponse
}

// connect reaches the driver and asks who it is. The caller closes the target.
func connect(ctx context.Context, c Config) (*target, error) {
	t := &target{}
	var err error
	if t.driver, err = dial(c.Endpoint, grpc.WithChainUnaryInterceptor(t.judge)); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	t.handshake, t.health = handshakev1.NewHandshakeServiceClient(t.driver), healthv1.NewHealthClient(t.driver)
	t.identity, t.machines = driverv1alpha1.NewIdentityServiceClient(t.driver), driverv1alpha1.NewMachineServiceClient(t.driver)
	t.specs = driverv1alpha1.NewProviderSpecServiceClient(t.driver)
	if c.Backend != "" {
		if t.cloud, err = dial(c.Backend); err != nil {
			t.close()
			return nil, fmt.Errorf("backend: %w", err)
		}
		t.backend = backendv1alpha1.NewBackendServiceClient(t.cloud)
	}
	if err := t.introduce(ctx); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// introduce asks the driver, and the cloud if there are hooks, who they are.
func (t *target) introduce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, contract.DefaultIdentityDeadline)
	defer cancel()
	var err error
	if t.info, err = t.handshake.GetPluginInfo(ctx, &handshakev1.GetPluginInfoRequest{}, grpc.WaitForReady(true)); err != nil {
		return fmt.Errorf("ask the driver who it is: %w", err)
	}
	if t.capabilities, err = t.identity.GetCapabilities(ctx, &driverv1alpha1.GetCapabilitiesRequest{}); err != nil {
		return fmt.Errorf("ask the driver what it can do: %w", err)
	}
	if t.backend != nil {
		if _, err := t.backend.GetBackendInfo(ctx, &backendv1alpha1.GetBackendInfoRequest{}, grpc.WaitForReady(true)); err != nil {
			return fmt.Errorf("ask the cloud's hooks who they are: %w", err)
		}
	}
	return nil
}

func (t *target) close() {
	for _, conn := range []*grpc.ClientConn{t.driver, t.cloud} {
		if conn != nil {
			_ = conn.Close()
		}
	}
}

// dial connects as core does: 8 MiB both ways, no retry.
func dial(endpoint string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(endpoint, append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(contract.MaxMessageBytes), grpc.MaxCallSendMsgSize(contract.MaxMessageBytes)),
	)...)
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

// maxUserData is how many bytes of user data the driver takes.
func (t *target) maxUserData() int {
	if n := t.capabilities.GetLimits().GetMaxUserDataBytes(); n > 0 {
		return int(n)
	}
	return contract.DefaultMaxUserDataBytes
}
