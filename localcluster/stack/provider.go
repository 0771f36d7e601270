package stack

import (
	"maps"
	"os"
	"slices"
	"strings"
)

// Provider is a test cloud with its driver: what differs between the clouds that a stack can run. See [Providers].
type Provider interface {
	// Name is the cloudProvider that Machines name to come to this cloud.
	Name() string
	// serving says how the cloud and its driver are run at these places.
	serving(at places) (serving, error)
}

// Providers returns all that there are; the first one is the default.
func Providers() []Provider { return []Provider{Fake(), OpenStack()} }

// Fake returns the fake cloud, whose API is its driver's own.
func Fake() Provider { return fake{} }

// OpenStack returns the simulator of OpenStack, with the project and the user demo for the driver. Its world holds what the manifests
// of MetaKube's users name.
func OpenStack() Provider { return openStack{} }

// places are where a cloud and its driver serve, and where the cloud keeps what it holds.
type places struct {
	// hooks is the endpoint of millwright.backend.v1alpha1, driver that of the driver.
	hooks, driver string
	state         string
	// address returns an address on this machine that nobody else has, as host:port: another one each time. Who ends and is started again
	// finds it free.
	address func() (string, error)
}

// serving is how a cloud and its driver are run.
type serving struct {
	cloud, driver         string // the executables
	cloudArgs, driverArgs []string
	// environment is what clients of the cloud's own API, the driver among them, are told by their environment.
	environment map[string]string
}

type fake struct{}

func (fake) Name() string { return "fake" }

func (fake) serving(at places) (serving, error) {
	return serving{
		cloud: "fakecloud", cloudArgs: []string{"--listen=" + at.hooks, "--state=" + at.state},
		driver: "millwright-driver-fake", driverArgs: []string{"--endpoint=" + at.driver, "--cloud=" + at.hooks},
	}, nil
}

type openStack struct{}

func (openStack) Name() string { return "openstack" }

// serving chooses the address of the APIs itself: a cloud that is started again is found where it was.
func (openStack) serving(at places) (serving, error) {
	address, err := at.address()
	if err != nil {
		return serving{}, err
	}
	return serving{
		cloud: "openstacksim", cloudArgs: []string{"--listen=" + address, "--backend-listen=" + at.hooks, "--state=" + at.state},
		driver: "millwright-driver-openstack", driverArgs: []string{"--endpoint=" + at.driver},
		environment: map[string]string{
			"OS_AUTH_URL": "http://" + address + "/v3", "OS_REGION_NAME": "RegionOne",
			"OS_USERNAME": "demo", "OS_USER_DOMAIN_NAME": "Default", "OS_PASSWORD": "secret",
			"OS_PROJECT_NAME": "demo", "OS_PROJECT_DOMAIN_NAME": "Default",
		},
	}, nil
}

// variables returns the environment as KEY=value, sorted. What this process has inherited under a like name is emptied: credentials of
// a real cloud, in the shell of whoever tries this out, must not reach the driver of a test cloud.
func (s serving) variables() []string {
	all := map[string]string{}
	for _, inherited := range os.Environ() {
		if key, _, _ := strings.Cut(inherited, "="); strings.HasPrefix(key, "OS_") {
			all[key] = ""
		}
	}
	maps.Copy(all, s.environment)
	var list []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		list = append(list, key+"="+all[key])
	}
	return list
}
