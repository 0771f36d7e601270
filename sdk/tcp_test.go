package sdk_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"

	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
	"github.com/millwright-dev/millwright/sdk"
	"github.com/millwright-dev/millwright/transport/mtls"
	"github.com/millwright-dev/millwright/transport/mtls/mtlstest"
)

// A connection over TCP ends by itself after a while, so that whose certificate does not count any
// more cannot stay. The certificates are those of now then.
func TestConnectionsOverTCPDoNotLast(t *testing.T) {
	const age = 200 * time.Millisecond
	ca, err := mtlstest.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	core, driver := t.TempDir(), t.TempDir()
	issue := func(folder, identity string) {
		if err := ca.Issue(folder, identity, time.Hour, ca); err != nil {
			t.Fatal(err)
		}
	}
	issue(core, "core.example")
	issue(driver, "driver.example")
	address := serveTCP(t, sdk.Options{
		TLS: sdk.TLS{Folder: driver, Client: "core.example"}, MaxConnectionAge: age, Log: slog.New(slog.DiscardHandler),
	})
	config, err := mtls.Client(core, "driver.example")
	if err != nil {
		t.Fatal(err)
	}
	conn := dialTCP(t, address, config)
	conn.Connect()
	for _, state := range []connectivity.State{connectivity.Ready, connectivity.Idle} {
		for now := conn.GetState(); now != state; now = conn.GetState() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if !conn.WaitForStateChange(ctx, now) {
				t.Fatalf("the connection stays %s, want %s", now, state)
			}
			cancel()
		}
	}
	// The driver's certificate is another now, and nobody has started it again.
	issue(driver, "renamed.example")
	if config, err = mtls.Client(core, "renamed.example"); err != nil {
		t.Fatal(err)
	}
	again := dialTCP(t, address, config)
	if _, err := handshakev1.NewHandshakeServiceClient(again).GetPluginInfo(t.Context(), &handshakev1.GetPluginInfoRequest{}); err != nil {
		t.Errorf("with the new certificate: %v", err)
	}
}

// serveTCP serves a driver until the test ends, and returns where.
func serveTCP(t *testing.T, o sdk.Options) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	ready, served := make(chan struct{}), make(chan error, 1)
	o.Endpoint, o.Ready = "tcp://"+address, func() { close(ready) }
	ctx, stop := context.WithCancel(context.Background())
	go func() { served <- sdk.Serve(ctx, &sawmill{}, o) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-served:
		served <- err
		t.Fatal(err)
	}
	return address
}

func dialTCP(t *testing.T, address string, config *tls.Config) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
