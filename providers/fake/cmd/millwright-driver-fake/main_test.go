package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/cloud"
	"github.com/millwright-dev/millwright/sdk/socket"
)

// asCommand makes the test's own executable the command under test.
const asCommand = "DRIVER_FAKE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	if os.Getenv(asMutant) != "" {
		mutated(os.Args[1], os.Args[2])
		return
	}
	if config := os.Getenv(asHarness); config != "" {
		os.Exit(harness(config))
	}
	os.Exit(m.Run())
}

// ownKey opens the default account, as no key does, otherKey another.
const (
	ownKey   = "unlocks the default"
	otherKey = "other"
)

// cloudPage is how many VMs the cloud tells of at once.
const cloudPage = 20

// scene is a cloud in this process and a place for a driver's process.
type scene struct {
	*testing.T
	dir string
	// expired is a folder with a certificate of core's that has expired, and driverTLS that with
	// the driver's own, once a driver is on TCP.
	expired, driverTLS string
	hooks              backendv1alpha1.BackendServiceClient
}

func newScene(t *testing.T) *scene {
	t.Helper()
	// Not t.TempDir: a socket's path has to be short.
	dir, err := os.MkdirTemp("", "driver")
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, dir: dir}
	c, err := cloud.Open(cloud.Options{Accounts: map[string]string{ownKey: "default", otherKey: "other"}, Page: cloudPage})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := socket.Listen(s.endpoint("cloud"))
	if err != nil {
		t.Fatal(err)
	}
	s.serve(c, listener)
	s.hooks = backendv1alpha1.NewBackendServiceClient(s.connect("cloud"))
	return s
}

func (s *scene) serve(c *cloud.Cloud, listener net.Listener) {
	server := grpc.NewServer()
	c.Register(server)
	go func() { _ = server.Serve(listener) }()
	s.Cleanup(func() {
		_ = c.Close()
		server.Stop()
		_ = os.RemoveAll(s.dir)
	})
}

func (s *scene) endpoint(name string) string { return "unix://" + filepath.Join(s.dir, name+".sock") }

// logPath is the log of the drivers that are processes of their own.
func (s *scene) logPath() string { return filepath.Join(s.dir, "driver.log") }

func (s *scene) connect(name string) *grpc.ClientConn {
	s.Helper()
	conn, err := grpc.NewClient(s.endpoint(name),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		// The process may not be up yet: try again soon. A connection gets longer than that to come
		// up: without a limit of its own, gRPC closes it when the next attempt is due.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond},
			MinConnectTimeout: 20 * time.Second,
		}))
	if err != nil {
		s.Fatalf("connect: %v", err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	return conn
}

// start runs the driver.
func (s *scene) start() *exec.Cmd {
	s.Helper()
	return s.run("--endpoint", s.endpoint("driver"))
}

// run runs the driver with more flags than where its cloud is.
func (s *scene) run(flags ...string) *exec.Cmd {
	s.Helper()
	command := exec.Command(os.Args[0], append(flags, "--cloud", s.endpoint("cloud"))...)
	command.Env = append(os.Environ(), asCommand+"=1")
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = log.Close() })
	command.Stderr = log
	if err := command.Start(); err != nil {
		s.Fatalf("start: %v", err)
	}
	s.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return command
}

// machines returns a client of the driver once that has reached its cloud.
func (s *scene) machines(ctx context.Context) driverv1alpha1.MachineServiceClient {
	s.Helper()
	machines := driverv1alpha1.NewMachineServiceClient(s.connect("driver"))
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := machines.GetMachineStatus(ctx, &driverv1alpha1.GetMachineStatusRequest{Meta: meta(), Machine: ref(), Provider: provider()})
		if code := status.Code(err); code == codes.OK || code == codes.NotFound {
			return machines
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.Fatalf("waited in vain for the driver to reach its cloud: %v", err)
		}
	}
}

// hold makes the next call of the operation stop at this point.
func (s *scene) hold(operation string, point backendv1alpha1.FaultPoint) {
	s.Helper()
	_, err := s.hooks.InjectFault(s.Context(), &backendv1alpha1.InjectFaultRequest{Fault: &backendv1alpha1.Fault{
		Match: &backendv1alpha1.FaultMatch{Operation: operation}, Times: 1,
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD, Point: point,
	}})
	if err != nil {
		s.Fatalf("hold: %v", err)
	}
}

// await follows the ledger until a call that was held is as wanted.
func (s *scene) await(ctx context.Context, wanted func(*backendv1alpha1.Call) bool) {
	s.Helper()
	for revision := int64(0); ; {
		answer, err := s.hooks.ListCalls(ctx, &backendv1alpha1.ListCallsRequest{AfterRevision: revision, Wait: durationpb.New(time.Minute)})
		if err != nil {
			s.Fatalf("follow the ledger: %v", err)
		}
		for _, one := range answer.GetCalls() {
			if len(one.GetFaultIds()) > 0 && wanted(one) {
				return
			}
			revision = one.GetRevision()
		}
	}
}

func meta() *driverv1alpha1.RequestMeta {
	return &driverv1alpha1.RequestMeta{RequestId: "request", ClusterUid: "cluster"}
}

func ref() *driverv1alpha1.MachineRef {
	return &driverv1alpha1.MachineRef{Namespace: "default", Name: "machine", Uid: "m1"}
}

func provider() *driverv1alpha1.ProviderContext {
	return &driverv1alpha1.ProviderContext{ProviderSpec: []byte(`{"flavor":"small","image":"ubuntu-24.04"}`)}
}

// A driver is killed before and after each of the cloud's calls of a create and of a delete: the
// next one finishes with exactly one VM, or with nothing.
func TestKilledAtEveryCall(t *testing.T) {
	for _, operation := range []string{"CreateNIC", "CreateVM", "DeleteVM", "DeleteNIC"} {
		for _, point := range []backendv1alpha1.FaultPoint{
			backendv1alpha1.FaultPoint_FAULT_POINT_BEFORE_EFFECT, backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT,
		} {
			t.Run(operation+" "+point.String(), func(t *testing.T) { newScene(t).killAt(operation, point) })
		}
	}
}

func (s *scene) killAt(operation string, point backendv1alpha1.FaultPoint) {
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	s.hold(operation, point)
	driver := s.start()
	asked := make(chan error, 1)
	machines := s.machines(ctx)
	go func() { asked <- createAndDelete(ctx, machines) }()
	done := point == backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT
	s.await(ctx, func(c *backendv1alpha1.Call) bool { return c.GetDone() == done })
	if err := driver.Process.Kill(); err != nil {
		s.Fatal(err)
	}
	_ = driver.Wait()
	if err := <-asked; err == nil {
		s.Fatal("the kill did not hit")
	}
	s.await(ctx, func(c *backendv1alpha1.Call) bool {
		return c.GetProgress() == backendv1alpha1.CallProgress_CALL_PROGRESS_ABANDONED && c.GetDone() == done
	})
	if _, err := s.hooks.RemoveFaults(ctx, &backendv1alpha1.RemoveFaultsRequest{}); err != nil {
		s.Fatal(err)
	}
	s.await(ctx, func(c *backendv1alpha1.Call) bool { return c.GetAnswerTime() != nil })

	s.start() // takes over the socket of the dead one
	machines = s.machines(ctx)
	if operation == "CreateNIC" || operation == "CreateVM" {
		if err := create(ctx, machines); err != nil {
			s.Errorf("create again: %v", err)
		}
		s.expect(ctx, 1, 2)
	}
	if err := remove(ctx, machines); err != nil {
		s.Errorf("delete again: %v", err)
	}
	s.expect(ctx, 1, 0)
}

func createAndDelete(ctx context.Context, machines driverv1alpha1.MachineServiceClient) error {
	if err := create(ctx, machines); err != nil {
		return err
	}
	return remove(ctx, machines)
}

func create(ctx context.Context, machines driverv1alpha1.MachineServiceClient) error {
	_, err := machines.CreateMachine(ctx, &driverv1alpha1.CreateMachineRequest{Meta: meta(), Machine: ref(), Provider: provider()})
	return err
}

func remove(ctx context.Context, machines driverv1alpha1.MachineServiceClient) error {
	_, err := machines.DeleteMachine(ctx, &driverv1alpha1.DeleteMachineRequest{Meta: meta(), Machine: ref(), Provider: provider()})
	return err
}

func (s *scene) expect(ctx context.Context, created, left int64) {
	s.Helper()
	totals, err := s.hooks.GetTotals(ctx, &backendv1alpha1.GetTotalsRequest{})
	if err != nil || totals.GetVmsCreated() != created || totals.GetResourcesLeft() != left {
		s.Errorf("totals %v, %v; want %d created and %d left", totals, err, created, left)
	}
}
