package sdk_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
	"github.com/millwright-dev/millwright/sdk"
	"github.com/millwright-dev/millwright/sdk/socket"
)

// asDriver makes the test's own binary a driver, so that a whole process can be killed.
const asDriver = "SAWMILL_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asDriver) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	options := sdk.Options{Log: slog.New(slog.DiscardHandler), Ready: func() { fmt.Println("ready") }}
	if os.Getenv(asDriver) == "launched" {
		// What comes first on stdout is for whoever started it.
		options.Ready = func() { fmt.Fprintln(os.Stderr, "ready") }
	}
	err := sdk.Serve(ctx, &sawmill{}, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process runs a driver as a process of its own, and returns when it takes calls.
func process(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asDriver+"=1", sdk.EndpointVariable+"=unix://"+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("the process says %q, %v; want ready", line, err)
	}
	return cmd
}

func mustAnswer(t *testing.T, path string) {
	t.Helper()
	_, err := handshakev1.NewHandshakeServiceClient(dial(t, path)).GetPluginInfo(t.Context(), &handshakev1.GetPluginInfoRequest{})
	if err != nil {
		t.Errorf("the driver at the socket: %v", err)
	}
}

func TestASocketAfterKill9IsTakenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.sock")
	for range 3 {
		cmd := process(t, path)
		mustAnswer(t, path)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("kill -9 has left no socket to take over: %v", err)
		}
	}
	serve(t, &sawmill{}, sdk.Options{Endpoint: "unix://" + path})
	mustAnswer(t, path)
}

func TestALiveSocketIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.sock")
	process(t, path)
	err := sdk.Serve(t.Context(), &sawmill{}, sdk.Options{Endpoint: "unix://" + path})
	if !errors.Is(err, socket.ErrInUse) {
		t.Errorf("Serve = %v, want ErrInUse", err)
	}
	mustAnswer(t, path)
}

func TestSIGTERMEndsAProcessCleanly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.sock")
	cmd := process(t, path)
	// A connection without calls is no reason to wait.
	conn := dial(t, path)
	if _, err := driverv1alpha1.NewIdentityServiceClient(conn).Probe(t.Context(), &driverv1alpha1.ProbeRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := await(t, ended, "the process to end"); err != nil {
		t.Errorf("the process ended with %v, want exit code 0", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}
