package stack

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/localcluster"
)

// at returns places like those of a stack, with one address.
func at(address string) places {
	return places{hooks: "unix:///h", driver: "unix:///d", state: "/s", address: func() (string, error) { return address, nil }}
}

// Whoever tries this out may have credentials of a real cloud in his shell: no driver of a test
// cloud gets to see them.
func TestNoCredentialsAreInherited(t *testing.T) {
	t.Setenv("OS_CLOUD", "production")
	t.Setenv("OS_PASSWORD", "real")
	t.Setenv("HOSTNAME_OS_X", "kept as it is")
	for _, tc := range []struct {
		provider Provider
		reason   string
		want     []string
	}{
		{Fake(), "it needs none", []string{"OS_CLOUD=", "OS_PASSWORD="}},
		{OpenStack(), "it gets those of the simulator", []string{
			"OS_AUTH_URL=http://127.0.0.1:1/v3", "OS_CLOUD=", "OS_PASSWORD=secret", "OS_PROJECT_DOMAIN_NAME=Default", "OS_PROJECT_NAME=demo",
			"OS_REGION_NAME=RegionOne", "OS_USERNAME=demo", "OS_USER_DOMAIN_NAME=Default",
		}},
	} {
		t.Run(tc.provider.Name(), func(t *testing.T) {
			got, err := tc.provider.serving(at("127.0.0.1:1"))
			if err != nil {
				t.Fatal(err)
			}
			// Others may be inherited from where the test runs, and are empty then.
			variables := slices.DeleteFunc(got.variables(), func(v string) bool { return v[len(v)-1] == '=' && !slices.Contains(tc.want, v) })
			if diff := cmp.Diff(tc.want, variables); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Real services are reached as a file says; without it there is a clear error.
func TestRealServicesAreStoodBefore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "services.json")
	if _, err := OpenStackServices(file).serving(at("127.0.0.1:1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
	if err := os.WriteFile(file, []byte(`{"region":"north","member":"mill","password":"p","administrator":"root"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := OpenStackServices(file).serving(at("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"--listen=127.0.0.1:1", "--backend-listen=unix:///h", "--upstream=" + file}; !slices.Equal(got.cloudArgs, want) {
		t.Errorf("the cloud is started with %q, want %q", got.cloudArgs, want)
	}
	want := map[string]string{
		"OS_AUTH_URL": "http://127.0.0.1:1/v3", "OS_REGION_NAME": "north", "OS_USERNAME": "mill", "OS_USER_DOMAIN_NAME": "Default",
		"OS_PASSWORD": "p", "OS_PROJECT_NAME": "mill", "OS_PROJECT_DOMAIN_NAME": "Default",
	}
	if diff := cmp.Diff(want, got.environment); diff != "" {
		t.Errorf("the driver is told (-want +got):\n%s", diff)
	}
}

// The QEMU driver is told where VMs and images are, and on a bridge which addresses to give out.
func TestVMsAreReachedAsTheirNetworkHasIt(t *testing.T) {
	images := t.TempDir()
	here := places{driver: "unix:///d", state: "/s", images: images}
	if _, err := QEMU().serving(here); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without an image: %v", err)
	}
	if err := os.WriteFile(filepath.Join(images, "node.qcow2"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	always := []string{"--endpoint=unix:///d", "--state-dir=/s", "--image-dir=" + images}
	bridge := Bridge{Name: "br0", Addresses: "10.77.0.10-10.77.0.19/24", Gateway: "10.77.0.1"}
	for name, tc := range map[string]struct {
		provider Provider
		args     []string
		endpoint localcluster.Endpoint
	}{
		"in a user network": {QEMU(), always, localcluster.Endpoint{Host: "10.0.2.2"}},
		"on a bridge": {
			QEMUOnBridge(bridge), append(always, "--bridge=br0", "--bridge-addresses=10.77.0.10-10.77.0.19/24", "--bridge-gateway=10.77.0.1"),
			localcluster.Endpoint{BindAddress: "0.0.0.0", Host: "10.77.0.1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.provider.serving(here)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.args, got.driverArgs); diff != "" {
				t.Errorf("the driver's flags (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.endpoint, tc.provider.endpoint()); diff != "" {
				t.Errorf("the API server's address (-want +got):\n%s", diff)
			}
		})
	}
}

// A VM is known by its machine's uid; another process is left alone.
func TestVMsEndWithTheStack(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "a-uid"), 0o700); err != nil {
		t.Fatal(err)
	}
	start := func(name string) *exec.Cmd {
		process := exec.Command("/bin/sh", "-c", "read line", "-name", "millwright-"+name, "-nodefaults")
		if _, err := process.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = process.Process.Kill() })
		return process
	}
	ours, others := start("a-uid"), start("another-uid")
	ended := make(chan error, 1)
	go func() { ended <- ours.Wait() }()
	if err := errors.Join(endVMs(""), endVMs(filepath.Join(folder, "none")), endVMs(folder)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || err.Error() != "signal: killed" {
		t.Errorf("the VM ended with %v", err)
	}
	if err := others.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another process: %v", err)
	}
}
