package stack

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
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
