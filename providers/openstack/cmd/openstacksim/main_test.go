package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
)

// asCommand makes the test's own executable the command under test.
const asCommand = "OPENSTACKSIM_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start runs the command, and returns what it says once it serves.
func start(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), asCommand+"=1")
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it says %q: %v", line, err)
	}
	var said struct {
		Endpoint string `json:"identityEndpoint"`
	}
	if err := json.Unmarshal([]byte(line), &said); err != nil {
		t.Fatalf("it says %q: %v", line, err)
	}
	return command, said.Endpoint
}

func hooks(t *testing.T, endpoint string) backendv1alpha1.BackendServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return backendv1alpha1.NewBackendServiceClient(conn)
}

func login(ctx context.Context, endpoint string) error {
	_, err := openstack.AuthenticatedClient(ctx, gophercloud.AuthOptions{
		IdentityEndpoint: endpoint, Username: "demo", Password: openstacksim.Password, DomainName: "Default", TenantName: "demo",
	})
	return err
}

func TestOutlivesKillAndEndsCleanly(t *testing.T) {
	// Not t.TempDir: a socket's path has to be short.
	dir, err := os.MkdirTemp("", "openstacksim")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config, at := filepath.Join(dir, "config.json"), "unix://"+filepath.Join(dir, "cloud.sock")
	if err := os.WriteFile(config, []byte(`{"flavors": [{"name": "extra", "vcpus": 1, "ram": 1, "disk": 1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--backend-listen", at, "--state", filepath.Join(dir, "state"), "--config", config, "--quota", "vm=3", "--call-latency", "0.1ms-0.2ms",
		"--boot-latency", "1ms", "--token-lifetime", "1m",
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	first, endpoint := start(t, args...)
	if err := login(ctx, endpoint); err != nil {
		t.Errorf("login: %v", err)
	}
	made, err := hooks(t, at).CreateForeignVM(ctx, &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{Name: "one"}})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()

	second, endpoint := start(t, args...) // its socket's path holds a dead socket
	found, err := hooks(t, at).ListVMs(ctx, &backendv1alpha1.ListVMsRequest{})
	if err != nil || len(found.GetVms()) != 1 || found.GetVms()[0].GetId() != made.GetVm().GetId() {
		t.Errorf("after kill -9: %v, %v; want %v", found, err, made)
	}
	if err := login(ctx, endpoint); err != nil {
		t.Errorf("login: %v", err)
	}
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "cloud.sock*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWhatCannotBeServed(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.json")
	if err := os.WriteFile(config, []byte(`{"nonsense": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"address": {"--listen", "nowhere"},
		"config":  {"--config", config},
		"file":    {"--config", filepath.Join(dir, "missing")},
		"socket":  {"--backend-listen", "tcp://127.0.0.1:0"},
		"state":   {"--state", dir},
	} {
		command := exec.Command(os.Args[0], args...)
		command.Env = append(os.Environ(), asCommand+"=1")
		said := &strings.Builder{}
		command.Stderr, command.Stdout = said, io.Discard
		if err := command.Run(); err == nil || !strings.Contains(said.String(), "openstacksim ended") {
			t.Errorf("%s: %v, it says %q", name, err, said)
		}
	}
}

func TestParseRange(t *testing.T) {
	for _, test := range []struct {
		in       string
		from, to time.Duration
		ok       bool
	}{
		{"0.2s-2s", 200 * time.Millisecond, 2 * time.Second, true},
		{"1s", time.Second, time.Second, true},
		{"2s-1s", 0, 0, false},
		{"soon", 0, 0, false},
	} {
		from, to, err := parseRange(test.in)
		if (err == nil) != test.ok || test.ok && (from != test.from || to != test.to) {
			t.Errorf("%q: %v, %v, %v", test.in, from, to, err)
		}
	}
}
