package main

import (
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/millwright-dev/millwright/conformance"
	"github.com/millwright-dev/millwright/providers/fake/cloud"
)

// asDriver makes the test's own executable the driver.
const asDriver = "DRIVER_TEST_AS_DRIVER"

func TestMain(m *testing.M) {
	if os.Getenv(asDriver) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestConformance holds the driver, as a process that the harness starts and kills, to the
// contract. Its cloud is one for tests, whose hooks let the harness look into it and have things
// fail.
func TestConformance(t *testing.T) {
	api, hooks := testCloud(t, 0)
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asDriver, "1")
	c := config(t)
	c.Endpoint = "exec://" + executable + "?" + url.Values{"arg": {"--cloud", api}, "env": {asDriver}}.Encode()
	c.Backend, c.Profile = hooks, conformance.ProfileFault
	conformance.Run(t, c)
}

// cloudPage is how many VMs the cloud tells of at once.
const cloudPage = 20

// config is what the harness tries the driver with, wherever that is.
func config(t *testing.T) conformance.Config {
	t.Helper()
	limit := conformance.Duration{Duration: 30 * time.Second}
	return conformance.Config{
		State: t.TempDir(), Output: t.Output(),
		ProviderSpec: []byte(`{"flavor": "small", "image": "ubuntu-24.04"}`), ConflictingSpec: []byte(`{"flavor": "large", "image": "ubuntu-24.04"}`),
		Secrets: token("opens default"), BadSecrets: token("opens nothing"), OtherSecrets: token("opens other"),
		Crowd: 20, CloudPage: cloudPage, Timeouts: conformance.Timeouts{Running: limit, Gone: limit},
	}
}

func token(value string) map[string]conformance.Secret {
	return map[string]conformance.Secret{"token": {Value: value}}
}

// testCloud returns where a cloud serves its API and its hooks, until the test ends. Its VMs take
// deleteLatency to go.
func testCloud(t *testing.T, deleteLatency time.Duration) (api, hooks string) {
	t.Helper()
	c, err := cloud.Open(cloud.Options{DeleteLatency: deleteLatency, Accounts: map[string]string{"opens default": "default", "opens other": "other"}, Page: cloudPage})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	server := httptest.NewServer(c.HTTP())
	t.Cleanup(server.Close)
	dir, err := os.MkdirTemp("", "driver") // not t.TempDir: a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "hooks.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	own := grpc.NewServer()
	c.RegisterHooks(own)
	go func() { _ = own.Serve(listener) }()
	t.Cleanup(own.Stop)
	return server.URL, "unix://" + path
}
