package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
	"github.com/millwright-dev/millwright/sdk/socket"
)

// asCommand makes the test's own executable the command under test.
const asCommand = "DRIVER_OPENSTACK_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// simulator is an OpenStack in this process, and a folder for sockets.
type simulator struct {
	dir string
	// identityEndpoint is where Keystone is.
	identityEndpoint string
}

// simulate serves a simulator until the test ends.
func simulate(t *testing.T, o openstacksim.Options) simulator {
	t.Helper()
	// Not t.TempDir: a socket's path has to be short.
	dir, err := os.MkdirTemp("", "driver")
	if err != nil {
		t.Fatal(err)
	}
	cloud := openstacksim.New(o)
	apis := httptest.NewServer(cloud.Handler())
	listener, err := socket.Listen("unix://" + filepath.Join(dir, "hooks.sock"))
	if err != nil {
		t.Fatal(err)
	}
	hooks := grpc.NewServer()
	cloud.Register(hooks)
	go func() { _ = hooks.Serve(listener) }()
	t.Cleanup(func() {
		// What faults still hold ends with the cloud; the servers wait for it.
		if err := cloud.Close(); err != nil {
			t.Error(err)
		}
		hooks.Stop()
		apis.CloseClientConnections()
		apis.Close()
		_ = os.RemoveAll(dir)
	})
	return simulator{dir: dir, identityEndpoint: apis.URL + "/v3"}
}

// hooks is where the simulator serves its hooks.
func (s simulator) hooks() string { return "unix://" + filepath.Join(s.dir, "hooks.sock") }
