package driver

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
)

const (
	driverName = "sawmill"
	clusterUID = "cluster-1"
	prefix     = "sawmill:///"
	patience   = 20 * time.Second
)

// fakeDriver is a driver whose answers a test decides. Fields are set before it serves.
type fakeDriver struct {
	driverv1alpha1.UnimplementedIdentityServiceServer
	driverv1alpha1.UnimplementedMachineServiceServer
	handshakev1.UnimplementedHandshakeServiceServer

	// specs serves ProviderSpecService; nil serves none.
	specs driverv1alpha1.ProviderSpecServiceServer

	info  *handshakev1.GetPluginInfoResponse
	caps  *driverv1alpha1.GetCapabilitiesResponse
	probe func() *driverv1alpha1.ProbeResponse

	create func(context.Context, *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error)
	remove func(context.Context, *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.DeleteMachineResponse, error)
	get    func(context.Context, *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.GetMachineStatusResponse, error)
	list   func(context.Context, *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error)
	// console is UNIMPLEMENTED where it is nil.
	console func(context.Context, *driverv1alpha1.GetConsoleOutputRequest) (*driverv1alpha1.GetConsoleOutputResponse, error)
}

func newFakeDriver() *fakeDriver {
	return &fakeDriver{
		info: &handshakev1.GetPluginInfoResponse{
			Name: driverName, VendorVersion: "v1", ApiPackages: []string{contract.DriverPackage},
		},
		caps: &driverv1alpha1.GetCapabilitiesResponse{
			Features:         []driverv1alpha1.Feature{driverv1alpha1.Feature_FEATURE_LIST},
			Limits:           &driverv1alpha1.Limits{},
			ProviderIdPrefix: prefix,
		},
		create: func(_ context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
			return &driverv1alpha1.CreateMachineResponse{Machine: running(r.GetMachine())}, nil
		},
		remove: func(context.Context, *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.DeleteMachineResponse, error) {
			return &driverv1alpha1.DeleteMachineResponse{}, nil
		},
		get: func(_ context.Context, r *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.GetMachineStatusResponse, error) {
			return &driverv1alpha1.GetMachineStatusResponse{Machine: running(r.GetMachine())}, nil
		},
		list: func(context.Context, *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error) {
			return nil, status.Error(codes.Unimplemented, "no list")
		},
	}
}

func (f *fakeDriver) GetPluginInfo(context.Context, *handshakev1.GetPluginInfoRequest) (*handshakev1.GetPluginInfoResponse, error) {
	return f.info, nil
}

func (f *fakeDriver) GetCapabilities(context.Context, *driverv1alpha1.GetCapabilitiesRequest) (*driverv1alpha1.GetCapabilitiesResponse, error) {
	return f.caps, nil
}

func (f *fakeDriver) Probe(context.Context, *driverv1alpha1.ProbeRequest) (*driverv1alpha1.ProbeResponse, error) {
	if f.probe != nil {
		return f.probe(), nil
	}
	return &driverv1alpha1.ProbeResponse{Ready: true}, nil
}

func (f *fakeDriver) CreateMachine(ctx context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
	return f.create(ctx, r)
}

func (f *fakeDriver) DeleteMachine(ctx context.Context, r *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.DeleteMachineResponse, error) {
	return f.remove(ctx, r)
}

func (f *fakeDriver) GetMachineStatus(ctx context.Context, r *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.GetMachineStatusResponse, error) {
	return f.get(ctx, r)
}

func (f *fakeDriver) ListMachines(ctx context.Context, r *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error) {
	return f.list(ctx, r)
}

func (f *fakeDriver) GetConsoleOutput(ctx context.Context, r *driverv1alpha1.GetConsoleOutputRequest) (*driverv1alpha1.GetConsoleOutputResponse, error) {
	if f.console == nil {
		return nil, status.Error(codes.Unimplemented, "no console")
	}
	return f.console(ctx, r)
}

// serve serves f on path until the test or stop ends it.
func (f *fakeDriver) serve(t *testing.T, path string) *grpc.Server {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(contract.MaxMessageBytes))
	handshakev1.RegisterHandshakeServiceServer(server, f)
	driverv1alpha1.RegisterIdentityServiceServer(server, f)
	driverv1alpha1.RegisterMachineServiceServer(server, f)
	if f.specs != nil {
		driverv1alpha1.RegisterProviderSpecServiceServer(server, f.specs)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return server
}

// rig is core's side: Drivers with one driver, started.
type rig struct {
	*Driver
	drivers *Drivers
	// lead ends the leadership; ended is closed once Start has returned.
	lead  context.CancelFunc
	ended chan struct{}
}

func socketPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "d.sock")
}

// start runs Drivers with one driver at path.
func start(t *testing.T, cfg Config, path string) *rig {
	t.Helper()
	cfg.ClusterUID = clusterUID
	if cfg.ReconnectDelay == 0 {
		cfg.ReconnectDelay = time.Millisecond
	}
	drivers, err := New(cfg, []Target{{Name: driverName, Address: "unix://" + path}})
	if err != nil {
		t.Fatal(err)
	}
	driver, err := drivers.For(driverName)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &rig{Driver: driver, drivers: drivers, lead: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		if err := drivers.Start(ctx); err != nil {
			t.Errorf("Start: %v", err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-r.ended
	})
	return r
}

// await reads wake-ups until done, which is asked first and after each.
func (r *rig) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	timeout := time.After(patience)
	for !done() {
		select {
		case <-r.drivers.Events():
		case <-timeout:
			t.Fatalf("%s did not come about", what)
		}
	}
}

// awaitReady waits until calls can start; the machine that asks is woken when they can.
func (r *rig) awaitReady(t *testing.T) {
	t.Helper()
	asking := machine("asking")
	r.await(t, "a ready driver", func() bool { return r.Reserve(asking, instance.Create) == nil })
	r.Forget(asking.Key(), asking.UID)
}

// outcome waits for the end of m's mutation.
func (r *rig) outcome(t *testing.T, m wire.Machine) instance.Outcome {
	t.Helper()
	var outcome instance.Outcome
	r.await(t, "the end of the call", func() bool {
		got, progress := r.Collect(m.Key(), m.UID)
		if progress == Idle {
			t.Fatal("no call is under way")
		}
		outcome = got
		return progress == Ended
	})
	return outcome
}

// observed waits for an observation of m that satisfies want.
func (r *rig) observed(t *testing.T, m wire.Machine, want func(instance.Observation) bool) instance.Observation {
	t.Helper()
	var seen instance.Observation
	r.await(t, "the observation", func() bool {
		got, ok := r.Observed(m.Key(), m.UID)
		seen = got
		return ok && want(got)
	})
	return seen
}

func machine(name string) wire.Machine {
	return wire.Machine{Namespace: "ns", Name: name, UID: "uid-" + name, Spec: []byte(`{"size":"s"}`)}
}

func machines(n int) []wire.Machine {
	var all []wire.Machine
	for i := range n {
		all = append(all, machine(fmt.Sprintf("m%04d", i)))
	}
	return all
}

// running is a proper answer about a machine.
func running(ref *driverv1alpha1.MachineRef) *driverv1alpha1.Machine {
	return &driverv1alpha1.Machine{
		Ref:        ref,
		ClusterUid: clusterUID,
		ProviderId: prefix + ref.GetUid(),
		State:      driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
	}
}

// says is an error as a proper driver makes it.
func says(code codes.Code, reason, message string, more ...protoadapt.MessageV1) error {
	details := append([]protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: driverName, Reason: reason}}, more...)
	s, err := status.New(code, message).WithDetails(details...)
	if err != nil {
		panic(err)
	}
	return s.Err()
}

func failureClass(err error) instance.Class {
	if failure, ok := err.(*instance.Failure); ok { //nolint:errorlint // the contract is the bare type
		return failure.Class
	}
	return ""
}
