package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// asCommand makes the test's own executable the command under test.
const asCommand = "FAKECLOUD_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), asCommand+"=1")
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return command
}

func connect(t *testing.T, endpoint string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		// The process may not be up yet: try again soon. A connection gets longer than that to come
		// up: without a limit of its own, gRPC closes it when the next attempt is due.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond},
			MinConnectTimeout: 20 * time.Second,
		}))
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestOutlivesKillAndEndsCleanly(t *testing.T) {
	// Not t.TempDir: a socket's path has to be short.
	dir, err := os.MkdirTemp("", "fakecloud")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	endpoint, state := "unix://"+filepath.Join(dir, "cloud.sock"), filepath.Join(dir, "state")
	args := []string{"--listen", endpoint, "--state", state, "--quota", "vm=3", "--call-latency", "0.1ms-0.2ms"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	first := start(t, args...)
	made, err := backendv1alpha1.NewBackendServiceClient(connect(t, endpoint)).CreateForeignVM(ctx, &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{Name: "one"}})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()

	second := start(t, args...) // its socket's path holds a dead socket
	conn := connect(t, endpoint)
	found, err := backendv1alpha1.NewBackendServiceClient(conn).ListVMs(ctx, &backendv1alpha1.ListVMsRequest{})
	if err != nil || len(found.GetVms()) != 1 || found.GetVms()[0].GetId() != made.GetVm().GetId() {
		t.Errorf("after kill -9: %v, %v; want %v", found, err, made)
	}
	intruder := start(t, args...)
	if err := intruder.Wait(); err == nil {
		t.Error("a second cloud took over a live one's socket")
	}
	// A call that is sent on the connection before the signal has to be answered.
	poll, err := conn.NewStream(ctx, &grpc.StreamDesc{}, backendv1alpha1.BackendService_ListVMs_FullMethodName)
	if err != nil {
		t.Fatalf("long poll: %v", err)
	}
	err = errors.Join(poll.SendMsg(&backendv1alpha1.ListVMsRequest{AfterRevision: 99, Wait: durationpb.New(time.Hour)}), poll.CloseSend())
	if err != nil {
		t.Fatalf("long poll: %v", err)
	}
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if err := poll.RecvMsg(&backendv1alpha1.ListVMsResponse{}); err != nil {
		t.Errorf("the long poll under way: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "cloud.sock*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
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
		{"1s-", 0, 0, false},
	} {
		from, to, err := parseRange(test.in)
		if (err == nil) != test.ok || test.ok && (from != test.from || to != test.to) {
			t.Errorf("%q: %v, %v, %v", test.in, from, to, err)
		}
	}
}
