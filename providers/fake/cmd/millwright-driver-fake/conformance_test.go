package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/millwright-dev/millwright/conformance"
	"github.com/millwright-dev/millwright/conformance/mutant"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/internal/reach"
	"github.com/millwright-dev/millwright/sdk"
	"github.com/millwright-dev/millwright/sdk/socket"
	"github.com/millwright-dev/millwright/transport/launch"
	"github.com/millwright-dev/millwright/transport/mtls/mtlstest"
)

// config is what the harness tries the driver with.
func (s *scene) config() conformance.Config {
	return conformance.Config{
		Endpoint: s.endpoint("driver"), Backend: s.endpoint("cloud"), State: s.TempDir(), DriverLog: s.logPath(),
		Output: s.Output(), ProviderSpec: []byte(`{"flavor":"small","image":"ubuntu-24.04"}`),
		ConflictingSpec: []byte(`{"flavor":"large","image":"ubuntu-24.04"}`), CloudPage: cloudPage,
		// The driver knows no auth.password: some mutants do.
		Secrets:      map[string]conformance.Secret{"key": {Value: ownKey}, "auth.password": {Value: "letmein-4711"}},
		BadSecrets:   map[string]conformance.Secret{"key": {Value: "opens nothing"}},
		OtherSecrets: map[string]conformance.Secret{"key": {Value: otherKey}},
	}
}

// The driver keeps to the contract, however it is reached: as a process of its own on a cloud that
// serves its hooks.
func TestConformance(t *testing.T) {
	for name, reach := range map[string]func(*scene) string{"unix": (*scene).sidecar, "tcp": (*scene).remote, "exec": (*scene).launched} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			c := s.config()
			c.Endpoint, c.Cycles = reach(s), 200
			c.ExpiredCertificate, c.DriverCertificates = s.expired, s.driverTLS
			if name == "exec" {
				c.Profile = conformance.ProfileFault
			}
			conformance.Run(t, c)
		})
	}
}

// What the contract recommends it does, too: a run as a test only logs what is against that. Each
// check is about one way at least to reach the driver.
func TestRecommendations(t *testing.T) {
	passed := map[string]bool{readOnlyRoot: true}
	for name, reach := range map[string]func(*scene) string{"tcp": (*scene).remote, "exec": (*scene).launched} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			c := s.config()
			c.Endpoint, c.Cycles = reach(s), 200
			c.DriverCertificates = s.driverTLS
			for _, check := range conformance.Checks() {
				if check.Level == conformance.Should {
					c.Focus = append(c.Focus, check.ID)
				}
			}
			report, err := conformance.Execute(t.Context(), c, conformance.Observer{})
			if err != nil {
				t.Fatal(err)
			}
			for _, result := range report.Results {
				if result.Outcome == conformance.Failed {
					t.Errorf("%+v", result)
				}
				passed[result.ID] = passed[result.ID] || result.Outcome == conformance.Passed
			}
		})
	}
	for id, is := range passed {
		if !is {
			t.Errorf("%s has passed on no transport", id)
		}
	}
}

// readOnlyRoot is a check that cannot be run in most containers.
const readOnlyRoot = "exec/read-only-root"

// sidecar starts the driver on a socket.
func (s *scene) sidecar() string {
	s.start()
	return s.endpoint("driver")
}

// Whom certificates are for.
const (
	coreIdentity   = "spiffe://trust.example/core"
	driverIdentity = "driver.example"
)

// certificates returns folders with the certificates of both sides.
func (s *scene) certificates() (core, driver string) {
	s.Helper()
	ca, err := mtlstest.NewAuthority()
	if err != nil {
		s.Fatal(err)
	}
	core, driver, s.expired = s.TempDir(), s.TempDir(), s.TempDir()
	s.driverTLS = driver
	for _, one := range []struct {
		folder, identity string
		valid            time.Duration
	}{{core, coreIdentity, time.Hour}, {driver, driverIdentity, time.Hour}, {s.expired, coreIdentity, -10 * time.Minute}} {
		if err := ca.Issue(one.folder, one.identity, one.valid, ca); err != nil {
			s.Fatal(err)
		}
	}
	return core, driver
}

// onTCP is the endpoint of a driver, for a core with these certificates.
func onTCP(address, core string) string {
	return "dns:///" + address + "?identity=" + driverIdentity + "&tls=" + core
}

// remote starts the driver on TCP.
func (s *scene) remote() string {
	core, driver := s.certificates()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		s.Fatal(err)
	}
	s.Setenv(sdk.TLSFolderVariable, driver)
	s.Setenv(sdk.TLSClientVariable, coreIdentity)
	s.run("--endpoint", "tcp://"+address)
	return onTCP(address, core)
}

// launched has the harness start the driver.
func (s *scene) launched() string {
	s.Setenv(asCommand, "1")
	return s.launch(asCommand, "--cloud", s.endpoint("cloud"))
}

// launch is the endpoint of this executable in a role: that which the variable says, which is set.
func (s *scene) launch(variable string, args ...string) string {
	s.Helper()
	path, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	return "exec://" + path + "?" + url.Values{"arg": args, "env": {variable}}.Encode()
}

// Each rule of the contract that is broken is caught by the check that stands for it.
func TestMutantsAreCaught(t *testing.T) {
	t.Setenv(asMutant, "1")
	for _, m := range mutant.All() {
		if m.Proxy {
			continue // The fake cloud speaks gRPC with this driver: the example driver is behind a fault proxy.
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			s := newScene(t)
			c := s.config()
			c.Focus, c.Cycles = []string{m.Check}, 50
			c.Timeouts.Running.Duration, c.Timeouts.Gone.Duration = 2*time.Second, 2*time.Second
			c.Endpoint = s.mutate(m)
			c.ExpiredCertificate, c.DriverCertificates = s.expired, s.driverTLS
			report, err := conformance.Execute(t.Context(), c, conformance.Observer{})
			if report == nil {
				t.Fatal(err)
			}
			if len(report.Results) == 1 && report.Results[0].Outcome == conformance.NotRun && m.Check == readOnlyRoot {
				t.Skip(report.Results[0].Reason)
			}
			if len(report.Results) != 1 || report.Results[0].Outcome != conformance.Failed {
				t.Errorf("%s does not catch it: %+v", m.Check, report.Results)
			}
			t.Logf("caught: %+v", report.Results)
		})
	}
}

// mutate serves the driver as a mutant until the test ends, and returns where.
func (s *scene) mutate(m mutant.Mutant) string {
	s.Helper()
	switch {
	case m.Launch:
		return s.launch(asMutant, m.Name, s.endpoint("cloud"))
	case m.TCP != nil:
		s.start()
		return s.mutateOnTCP(m)
	}
	s.start()
	listener, err := socket.Listen(s.endpoint(m.Name))
	if err != nil {
		s.Fatal(err)
	}
	if m.Socket != 0 {
		if err := os.Chmod(filepath.Join(s.dir, m.Name+".sock"), m.Socket); err != nil {
			s.Fatal(err)
		}
	}
	if m.Accept != nil {
		listener = m.Accept(listener)
	}
	s.serveMutant(mutant.NewServer(m, s.connect("driver")), listener)
	return s.endpoint(m.Name)
}

func (s *scene) mutateOnTCP(m mutant.Mutant) string {
	s.Helper()
	core, driver := s.certificates()
	creds, err := m.TCP(driver)
	if err != nil {
		s.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	s.serveMutant(mutant.NewServer(m, s.connect("driver"), grpc.Creds(creds)), listener)
	return onTCP(listener.Addr().String(), core)
}

func (s *scene) serveMutant(server *grpc.Server, listener net.Listener) {
	go func() { _ = server.Serve(listener) }()
	s.Cleanup(server.Stop)
}

// asMutant makes the test's own executable a mutant, driver and all, which the harness starts. Its
// arguments are the mutant's name and where the cloud is.
const asMutant = "DRIVER_FAKE_TEST_AS_MUTANT"

// mutated serves a mutant, and does not return.
func mutated(name, cloud string) {
	// The folder of the test outlives this process, which is killed, and goes in the end.
	dir, err := os.MkdirTemp(cmp.Or(os.Getenv("TMPDIR"), filepath.Dir(strings.TrimPrefix(cloud, "unix://"))), "mutant")
	if err != nil {
		panic(err)
	}
	endpoint := "unix://" + filepath.Join(dir, "d.sock")
	// The driver itself is not to find out that this process was started.
	if err := os.Unsetenv(launch.Handshake.MagicCookieKey); err != nil {
		panic(err)
	}
	serving := make(chan struct{})
	go func() {
		options := sdk.Options{Endpoint: endpoint, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Ready: func() { close(serving) }}
		if err := run(context.Background(), options, reach.Target{Endpoint: cloud}); err != nil {
			panic(err)
		}
	}()
	<-serving
	if err := os.Setenv(launch.Handshake.MagicCookieKey, launch.Handshake.MagicCookieValue); err != nil {
		panic(err)
	}
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		panic(err)
	}
	i := slices.IndexFunc(mutant.All(), func(m mutant.Mutant) bool { return m.Name == name })
	if at, is := strings.CutPrefix(os.Getenv(sdk.EndpointVariable), "unix://"); is && mutant.All()[i].Listen != nil {
		listener, err := mutant.All()[i].Listen(at)
		if err != nil {
			panic(err)
		}
		panic(mutant.NewServer(mutant.All()[i], conn).Serve(listener))
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: launch.Handshake, Plugins: launch.Plugins(), Logger: hclog.NewNullLogger(),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return mutant.NewServer(mutant.All()[i], conn, options...)
		},
	})
}

// asHarness makes the test's own executable a harness that runs with this config, as JSON.
const asHarness = "DRIVER_FAKE_TEST_AS_HARNESS"

// harness prints the id of its run.
func harness(config string) int {
	var c conformance.Config
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	_, err := conformance.Execute(context.Background(), c, conformance.Observer{Begin: func(runID string) { fmt.Println(runID) }})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A run that is killed while the cloud makes a VM leaves nothing once it was cleaned up after, and
// nothing else is touched.
func TestNothingIsLeftOfAKilledRun(t *testing.T) {
	s := newScene(t)
	s.start()
	c := s.config()
	s.hold("CreateVM", backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT)
	if _, err := s.hooks.CreateForeignVM(t.Context(), &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{
		Name: "theirs", ClusterUid: "another", MachineUid: "theirs",
	}}); err != nil {
		t.Fatal(err)
	}
	c.Focus = []string{"create/happy"}
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env, command.Stderr = append(os.Environ(), asHarness+"="+string(config)), t.Output()
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	runID := lines.Text()
	s.await(t.Context(), func(one *backendv1alpha1.Call) bool { return one.GetDone() })
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if _, err := s.hooks.RemoveFaults(t.Context(), &backendv1alpha1.RemoveFaultsRequest{}); err != nil {
		t.Fatal(err)
	}
	if n, err := conformance.Clean(t.Context(), c, runID); err != nil || n != 1 {
		t.Errorf("cleaned up after %d machines: %v", n, err)
	}
	left, err := s.hooks.ListResources(t.Context(), &backendv1alpha1.ListResourcesRequest{})
	if err != nil || slices.ContainsFunc(left.GetResources(), func(r *backendv1alpha1.Resource) bool { return r.GetClusterUid() != "another" }) ||
		len(left.GetResources()) == 0 {
		t.Errorf("left are %v (%v)", left.GetResources(), err)
	}
	if _, err := conformance.Clean(t.Context(), c, runID); err == nil {
		t.Error("cleaned up again: the journal is still there")
	}
}
