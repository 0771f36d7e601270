package transport

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/millwright-dev/millwright/transport/mtls"
	"github.com/millwright-dev/millwright/transport/mtls/mtlstest"
)

const patience = 5 * time.Second

// accept has something done with each connection to a listener.
func accept(t *testing.T, listener net.Listener, do func(net.Conn)) {
	t.Helper()
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go do(conn)
		}
	}()
}

func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	var l net.ListenConfig
	listener, err := l.Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// ends are the two ends' folders, of one CA.
func ends(t *testing.T, driverFor time.Duration) (core, driver string) {
	t.Helper()
	ca, err := mtlstest.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	core, driver = t.TempDir(), t.TempDir()
	if err := errors.Join(ca.Issue(core, "core", time.Hour, ca), ca.Issue(driver, "driver", driverFor, ca)); err != nil {
		t.Fatal(err)
	}
	return core, driver
}

// remote serves health on TCP to whom the driver's folder and peer allow it, and returns the
// address for a core of that folder.
func remote(t *testing.T, driver, core, peer string) string {
	t.Helper()
	config, err := mtls.Server(driver, mtls.Identity(peer))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	healthv1.RegisterHealthServer(server, health.NewServer())
	listener := listen(t, "tcp", "127.0.0.1:0")
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return tcpAddress(listener, core)
}

func tcpAddress(listener net.Listener, core string) string {
	return "dns:///" + listener.Addr().String() + "?" + url.Values{"tls": {core}, "identity": {"driver"}}.Encode()
}

// TestWhatIsInTheWay is told in words that are the same the next time, since they are shown on each
// Machine.
func TestWhatIsInTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		address func(t *testing.T) string
		says    string
		away    bool
	}{
		"nobody on the socket": {func(t *testing.T) string { return "unix://" + filepath.Join(t.TempDir(), "s") }, "no such file", true},
		"somebody who speaks something else": {func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "s")
			accept(t, listen(t, "unix", path), func(conn net.Conn) {
				_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
				_ = conn.Close()
			})
			return "unix://" + path
		}, "does not speak gRPC", false},
		"somebody who hangs up": {func(t *testing.T) string {
			core, _ := ends(t, time.Hour)
			listener := listen(t, "tcp", "127.0.0.1:0")
			accept(t, listener, func(conn net.Conn) { _ = conn.Close() })
			return tcpAddress(listener, core)
		}, "does not speak gRPC", false},
		"nobody on the port": {func(t *testing.T) string {
			core, _ := ends(t, time.Hour)
			listener := listen(t, "tcp", "127.0.0.1:0")
			_ = listener.Close()
			return tcpAddress(listener, core)
		}, "refused", true},
		"no certificate of one's own": {func(t *testing.T) string {
			return tcpAddress(listen(t, "tcp", "127.0.0.1:0"), t.TempDir())
		}, "read the certificate", false},
		"a driver whose certificate is old": {func(t *testing.T) string {
			core, driver := ends(t, -time.Minute)
			return remote(t, driver, core, "core")
		}, "is valid from", false},
		"a driver that wants somebody else": {func(t *testing.T) string {
			core, driver := ends(t, time.Hour)
			return remote(t, driver, core, "somebody")
		}, "does not trust this side's certificate", false},
		"no executable":         {func(t *testing.T) string { return "exec://" + filepath.Join(t.TempDir(), "driver") }, "no such file", false},
		"one that is no driver": {func(*testing.T) string { return "exec:///bin/true" }, "ended before it served", true},
	} {
		t.Run(name, func(t *testing.T) {
			way, err := Parse(c.address(t), Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, first := Connect(t.Context(), way, patience)
			if first == nil || !strings.Contains(first.Error(), c.says) || errors.Is(first, ErrAway) != c.away {
				t.Fatalf("error %v, want one that says %q; away %t", first, c.says, c.away)
			}
			_, again := Connect(t.Context(), way, patience)
			if again == nil || !c.away && again.Error() != first.Error() {
				t.Errorf("at first %q, then %q", first, again)
			}
		})
	}
}

// TestAConnectionDoesNotReconnect: who answers next at an address may be somebody else.
func TestAConnectionDoesNotReconnect(t *testing.T) {
	core, driver := ends(t, time.Hour)
	address := remote(t, driver, core, "core")
	way, err := Parse(address, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := Connect(ctx, way, patience)
	if err != nil {
		t.Fatal(err)
	}
	client := healthv1.NewHealthClient(conn)
	if _, err := client.Check(ctx, &healthv1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	_ = conn.wire.Conn.Close()
	conn.Lost(ctx)
	if _, err := client.Check(ctx, &healthv1.HealthCheckRequest{}, grpc.WaitForReady(true)); err == nil {
		t.Error("a call is answered on a connection that was lost")
	}
	if conn.Process() != nil {
		t.Error("a driver elsewhere has a process")
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestAKilledDriverIsStartedLater: not at once when it has ended soon again and again, unless that
// is wanted.
func TestAKilledDriverIsStartedLater(t *testing.T) {
	script := filepath.Join(t.TempDir(), "driver")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	way, err := Parse("exec://"+script, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var waits int
	for range 4 {
		if _, err := way.Open(t.Context()); errors.Is(err, ErrPaused) && errors.Is(err, ErrAway) {
			waits++
		}
	}
	if waits == 0 {
		t.Error("a driver that ends at once is started without a pause")
	}
}

// TestADriverIsStartedWithWhatItNeeds: with its own variables, and with those by which this process
// reaches its cloud.
func TestADriverIsStartedWithWhatItNeeds(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example:3128")
	t.Setenv("SAWMILL_REGION", "north")
	command, err := Command("exec:///opt/driver?arg=--a&env=SAWMILL_REGION")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"HTTPS_PROXY=http://proxy.example:3128", "SAWMILL_REGION=north"} {
		if !slices.Contains(command.Env, want) {
			t.Errorf("%v lacks %s", command.Env, want)
		}
	}
	if command.Path != "/opt/driver" || !slices.Equal(command.Args, []string{"--a"}) {
		t.Errorf("it starts %s %v", command.Path, command.Args)
	}
	for endpoint, want := range map[string]string{
		"unix:///run/driver.sock":     "starts no driver",
		"exec://driver":               "three slashes",
		"exec:///driver?env=NOT_SET":  "NOT_SET",
		"exec:///driver?sha256=short": "checksum",
	} {
		if _, err := Command(endpoint); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}
