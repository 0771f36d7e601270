package sdk_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

const (
	driverName = "sawmill"
	prefix     = "sawmill:///"
	// patience bounds waits for what comes at once when the code is right.
	patience = 20 * time.Second
)

// sawmill is the least that a driver is; a test decides its answers.
type sawmill struct {
	info   func() sdk.Info
	create func(context.Context, *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error)
	get    func(context.Context, *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error)
	remove func(context.Context, *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.Machine, error)
}

func goodInfo() sdk.Info {
	return sdk.Info{Name: driverName, Version: "v1.2.3", ProviderIDPrefix: prefix, Manifest: map[string]string{"commit": "abc"}}
}

func (s *sawmill) Info() sdk.Info {
	if s.info != nil {
		return s.info()
	}
	return goodInfo()
}

func (s *sawmill) CreateMachine(ctx context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
	if s.create != nil {
		return s.create(ctx, r)
	}
	return running(r.GetMeta(), r.GetMachine()), nil
}

func (s *sawmill) GetMachineStatus(ctx context.Context, r *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error) {
	if s.get != nil {
		return s.get(ctx, r)
	}
	return running(r.GetMeta(), r.GetMachine()), nil
}

func (s *sawmill) DeleteMachine(ctx context.Context, r *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.Machine, error) {
	if s.remove != nil {
		return s.remove(ctx, r)
	}
	return nil, nil
}

// everything offers all there is.
type everything struct {
	sawmill
	list  func() (*driverv1alpha1.ListMachinesResponse, error)
	probe func(context.Context) error
	// console is what every VM has written.
	console []byte
}

func (e *everything) ListMachines(context.Context, *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error) {
	if e.list != nil {
		return e.list()
	}
	return &driverv1alpha1.ListMachinesResponse{}, nil
}

func (e *everything) AdoptMachine(_ context.Context, r *driverv1alpha1.AdoptMachineRequest) (*driverv1alpha1.Machine, error) {
	return running(r.GetMeta(), r.GetMachine()), nil
}

func (e *everything) GetConsoleOutput(context.Context, *driverv1alpha1.GetConsoleOutputRequest) ([]byte, error) {
	return e.console, nil
}

func (e *everything) GetProviderSpecSchema(
	context.Context, *driverv1alpha1.GetProviderSpecSchemaRequest,
) (*driverv1alpha1.GetProviderSpecSchemaResponse, error) {
	return &driverv1alpha1.GetProviderSpecSchemaResponse{JsonSchema: []byte(`{}`)}, nil
}

func (e *everything) DefaultProviderSpec(
	_ context.Context, r *driverv1alpha1.DefaultProviderSpecRequest,
) (*driverv1alpha1.DefaultProviderSpecResponse, error) {
	return &driverv1alpha1.DefaultProviderSpecResponse{ProviderSpec: r.GetProvider().GetProviderSpec()}, nil
}

func (e *everything) ValidateProviderSpec(
	context.Context, *driverv1alpha1.ValidateProviderSpecRequest,
) (*driverv1alpha1.ValidateProviderSpecResponse, error) {
	return &driverv1alpha1.ValidateProviderSpecResponse{}, nil
}

func (e *everything) GetInstanceTemplate(
	context.Context, *driverv1alpha1.GetInstanceTemplateRequest,
) (*driverv1alpha1.GetInstanceTemplateResponse, error) {
	return &driverv1alpha1.GetInstanceTemplateResponse{Template: &driverv1alpha1.InstanceTemplate{}}, nil
}

func (e *everything) Probe(ctx context.Context) error {
	if e.probe != nil {
		return e.probe(ctx)
	}
	return nil
}

func goodMeta() *driverv1alpha1.RequestMeta {
	return &driverv1alpha1.RequestMeta{RequestId: "r1", ClusterUid: "c1"}
}

func goodRef() *driverv1alpha1.MachineRef {
	return &driverv1alpha1.MachineRef{Namespace: "default", Name: "m", Uid: "u"}
}

func goodProvider() *driverv1alpha1.ProviderContext {
	return &driverv1alpha1.ProviderContext{ProviderSpec: []byte(`{"flavor":"small"}`)}
}

func goodCreate() *driverv1alpha1.CreateMachineRequest {
	return &driverv1alpha1.CreateMachineRequest{Meta: goodMeta(), Machine: goodRef(), Provider: goodProvider()}
}

func goodDelete() *driverv1alpha1.DeleteMachineRequest {
	return &driverv1alpha1.DeleteMachineRequest{Meta: goodMeta(), Machine: goodRef(), Provider: goodProvider()}
}

func goodGet() *driverv1alpha1.GetMachineStatusRequest {
	return &driverv1alpha1.GetMachineStatusRequest{Meta: goodMeta(), Machine: goodRef(), Provider: goodProvider()}
}

func goodConsole() *driverv1alpha1.GetConsoleOutputRequest {
	return &driverv1alpha1.GetConsoleOutputRequest{Meta: goodMeta(), Machine: goodRef(), Provider: goodProvider()}
}

func goodList() *driverv1alpha1.ListMachinesRequest {
	return &driverv1alpha1.ListMachinesRequest{Meta: goodMeta(), Provider: goodProvider()}
}

func running(meta *driverv1alpha1.RequestMeta, ref *driverv1alpha1.MachineRef) *driverv1alpha1.Machine {
	return &driverv1alpha1.Machine{
		Ref: ref, ClusterUid: meta.GetClusterUid(), ProviderId: prefix + ref.GetUid(),
		State: driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
	}
}

// served is a driver that Serve serves.
type served struct {
	path    string
	stop    context.CancelFunc
	stopped chan error
}

// serve serves driver on a socket of its own until the test or stop ends it; it returns when calls
// are accepted.
func serve(t *testing.T, driver sdk.Driver, o sdk.Options) *served {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s := &served{stop: stop, stopped: make(chan error, 1)}
	if o.Endpoint == "" {
		o.Endpoint = "unix://" + filepath.Join(t.TempDir(), "d.sock")
	}
	s.path = o.Endpoint[len("unix://"):]
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ready := make(chan struct{})
	o.Ready = func() { close(ready) }
	var serving sync.WaitGroup
	serving.Go(func() { s.stopped <- sdk.Serve(ctx, driver, o) })
	t.Cleanup(func() {
		stop()
		serving.Wait()
	})
	select {
	case <-ready:
	case err := <-s.stopped:
		t.Fatalf("Serve: %v", err)
	}
	return s
}

// dial connects to s, as core does.
func (s *served) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	return dial(t, s.path)
}

func dial(t *testing.T, path string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// await returns what comes out of c, or fails the test.
func await[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case got := <-c:
		return got
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}
