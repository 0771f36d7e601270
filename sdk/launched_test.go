package sdk_test

import (
	"os"
	"testing"
	"time"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
	"github.com/millwright-dev/millwright/transport"
)

// launched starts this executable as a driver, as core does.
func launched(t *testing.T) *transport.Conn {
	t.Helper()
	t.Setenv(asDriver, "launched")
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	way, err := transport.Parse("exec://"+path+"?env="+asDriver, transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := transport.Connect(t.Context(), way, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestADriverThatWasStartedServes(t *testing.T) {
	conn := launched(t)
	info, err := handshakev1.NewHandshakeServiceClient(conn).GetPluginInfo(t.Context(), &handshakev1.GetPluginInfoRequest{})
	if err != nil || info.GetName() != "sawmill" {
		t.Errorf("the handshake: %v, %v", info, err)
	}
	if _, err := driverv1alpha1.NewMachineServiceClient(conn).CreateMachine(t.Context(), goodCreate()); err != nil {
		t.Errorf("a create: %v", err)
	}
}

func TestADriverThatWasStartedEndsWhenItIsAsked(t *testing.T) {
	conn := launched(t)
	began := time.Now()
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	// With force it would take ten seconds.
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s to end", took)
	}
}
