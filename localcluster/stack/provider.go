package stack

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/millwright-dev/millwright/localcluster"
)

// Provider is a test cloud with its driver, or a driver alone whose machines are real: what differs
// between the clouds that a stack can run. See [Providers].
type Provider interface {
	// Name is the cloudProvider that Machines name to come to this cloud.
	Name() string
	// serving says how the cloud and its driver are run at these places.
	serving(at places) (serving, error)
	// endpoint says how the cloud's machines reach the API server.
	endpoint() localcluster.Endpoint
}

// Providers returns all that there are; the first one is the default.
func Providers() []Provider { return []Provider{Fake(), OpenStack(), QEMU()} }

// Fake returns the fake cloud, whose API is its driver's own.
func Fake() Provider { return fake{} }

// OpenStack returns the simulator of OpenStack, with the project and the user demo for the driver.
// Its world holds what the manifests of MetaKube's users name.
func OpenStack() Provider { return openStack{} }

// OpenStackServices returns real services of OpenStack, with the project of a member for the
// driver. A file in JSON names them, as openstacksim's flag --upstream takes it: openstacksim
// stands before them. What others have in the project has to be gone before.
func OpenStackServices(file string) Provider { return openStack{upstream: file} }

// OpenStackVMs returns the same services where their servers boot, and become Nodes by themselves:
// nothing stands before them, and there are no simulated kubelets. The servers reach this machine
// by its address gateway. The API server listens on all addresses then: use it in a network
// namespace of its own.
func OpenStackVMs(file, gateway string) Provider {
	return openStackVMs{openStack{upstream: file}, gateway}
}

// places are where a cloud and its driver serve, and where the cloud keeps what it holds.
type places struct {
	// hooks is the endpoint of millwright.backend.v1alpha1, driver that of the driver.
	hooks, driver string
	state         string
	// images is the folder with images of real Nodes.
	images string
	// address returns an address on this machine that nobody else has, as host:port: another one
	// each time. Who ends and is started again finds it free.
	address func() (string, error)
}

// serving is how a cloud and its driver are run.
type serving struct {
	// cloud and driver are the executables. Without a test cloud there are no simulated kubelets.
	cloud, driver         string
	cloudArgs, driverArgs []string
	// vms is the folder of VMs that outlive their driver, and that the stack ends.
	vms string
	// environment is what clients of the cloud's own API, the driver among them, are told by their
	// environment.
	environment map[string]string
}

type fake struct{}

func (fake) Name() string { return "fake" }

func (fake) endpoint() localcluster.Endpoint { return localcluster.Endpoint{} }

func (fake) serving(at places) (serving, error) {
	return serving{
		cloud: "fakecloud", cloudArgs: []string{"--listen=" + at.hooks, "--state=" + at.state},
		driver: "millwright-driver-fake", driverArgs: []string{"--endpoint=" + at.driver, "--cloud=" + at.hooks},
	}, nil
}

// openStack is the simulator, in memory or before the real services that a file names.
type openStack struct{ upstream string }

func (openStack) Name() string { return "openstack" }

func (openStack) endpoint() localcluster.Endpoint { return localcluster.Endpoint{} }

// serving chooses the address of the APIs itself: a cloud that is started again is found where it
// was.
func (o openStack) serving(at places) (serving, error) {
	address, err := at.address()
	if err != nil {
		return serving{}, err
	}
	as, err := o.member()
	if err != nil {
		return serving{}, err
	}
	args := []string{"--listen=" + address, "--backend-listen=" + at.hooks}
	if o.upstream == "" {
		args = append(args, "--state="+at.state)
	} else {
		args = append(args, "--upstream="+o.upstream)
	}
	return serving{
		cloud: "openstacksim", cloudArgs: args,
		driver: "millwright-driver-openstack", driverArgs: []string{"--endpoint=" + at.driver},
		environment: as.environment("http://" + address + "/v3"),
	}, nil
}

// openStackVMs are real services whose servers boot.
type openStackVMs struct {
	openStack
	gateway string
}

func (o openStackVMs) endpoint() localcluster.Endpoint {
	return localcluster.Endpoint{BindAddress: "0.0.0.0", Host: o.gateway}
}

func (o openStackVMs) serving(at places) (serving, error) {
	as, err := o.member()
	if err != nil {
		return serving{}, err
	}
	return serving{
		driver: "millwright-driver-openstack", driverArgs: []string{"--endpoint=" + at.driver}, environment: as.environment(as.IdentityEndpoint),
	}, nil
}

// member is whose project the driver works in, and where.
type member struct {
	IdentityEndpoint string `json:"identityEndpoint"`
	Region           string `json:"region"`
	Member           string `json:"member"`
	Password         string `json:"password"`
}

// environment is what clients are told that log in there.
func (m member) environment(identity string) map[string]string {
	return map[string]string{
		"OS_AUTH_URL": identity, "OS_REGION_NAME": m.Region,
		"OS_USERNAME": m.Member, "OS_USER_DOMAIN_NAME": "Default", "OS_PASSWORD": m.Password,
		"OS_PROJECT_NAME": m.Member, "OS_PROJECT_DOMAIN_NAME": "Default",
	}
}

func (o openStack) member() (member, error) {
	as := member{Region: "RegionOne", Member: "demo", Password: "secret"}
	if o.upstream == "" {
		return as, nil
	}
	raw, err := os.ReadFile(o.upstream)
	if err == nil {
		err = json.Unmarshal(raw, &as)
	}
	if err != nil {
		return member{}, fmt.Errorf("read how the services of OpenStack are reached: %w", err)
	}
	return as, nil
}

// variables returns the environment as KEY=value, sorted. What this process has inherited under a
// like name is emptied: credentials of a real cloud, in the shell of whoever tries this out, must
// not reach the driver of a test cloud.
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
