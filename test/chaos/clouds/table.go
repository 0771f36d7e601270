package clouds

import (
	"slices"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
)

// Cloud is a test cloud with its driver.
type Cloud struct {
	stack.Provider
	// Operations are those of the cloud's own that faults are about, each as often as it shall be
	// drawn; "" stands for all. Plans follow from their order: what is changed here changes what a
	// seed means for this cloud.
	Operations []string
	// Args are the cloud's flags: a VM takes a moment to come and to go.
	Args []string
	// Driver is the driver's executable, and DriverArgs are its flags: what takes minutes in
	// earnest takes seconds here.
	Driver     string
	DriverArgs []string
	// Templates are what Machines are made from, by the plan's number. They differ in what cannot
	// be changed in place.
	Templates []Template
	// Team returns what a team has that brings its own credentials; nil where there can be none.
	// The cloud's own clients find it in environment.
	Team func(environment map[string]string) Team
}

// Team is what a team brings: what its Machines inherit from its Cluster and its MachineClass, and
// its credentials.
type Team struct {
	Template

	// Secret holds its credentials by the names of the fields, and Common is its Cluster's spec, in
	// JSON.
	Secret map[string]string
	Common string
}

// Template is one of the things that Machines are made from.
type Template struct {
	// Kubelet is its version; no two templates of a cloud have the same.
	Kubelet string
	// Spec is the cloudProviderSpec, in JSON.
	Spec string
	// Resources are how many of each kind the cloud holds for one Machine, kinds as the cloud's
	// hooks name them.
	Resources map[string]int
}

// All returns all clouds; the first one is the default.
func All() []Cloud { return []Cloud{Fake(), OpenStack()} }

// Find returns the cloud of a name.
func Find(name string) (Cloud, bool) {
	all := All()
	i := slices.IndexFunc(all, func(c Cloud) bool { return c.Name() == name })
	if i < 0 {
		return Cloud{}, false
	}
	return all[i], true
}

// Resources returns how many of each kind the cloud holds for a Machine once all has settled. It is
// nil for a Machine that was made from none of the templates.
func (c Cloud) Resources(m *clusterv1alpha1.Machine) map[string]int {
	templates := c.Templates
	if c.Team != nil {
		templates = append(slices.Clip(templates), c.Team(nil).Template)
	}
	for _, t := range templates {
		if t.Kubelet == m.Spec.Versions.Kubelet {
			return t.Resources
		}
	}
	return nil
}

// Fake is the fake cloud.
func Fake() Cloud {
	of := func(kubelet, flavor string) Template {
		return Template{
			Kubelet: kubelet, Spec: `{"flavor":"` + flavor + `","image":"ubuntu-24.04"}`, Resources: map[string]int{"vm": 1, "nic": 1},
		}
	}
	return Cloud{
		Provider:   stack.Fake(),
		Operations: []string{"", "CreateNIC", "ListNICs", "DeleteNIC", "CreateVM", "CreateVM", "ListVMs", "DeleteVM"},
		Args:       []string{"--boot-latency=200ms", "--delete-latency=200ms"},
		Driver:     "millwright-driver-fake",
		Templates:  []Template{of("1.36.3", "small"), of("1.36.2", "medium"), of("1.36.1", "large")},
		Team: func(map[string]string) Team {
			return Team{Template: of("1.36.0", "small"), Secret: map[string]string{"key": TeamKey}, Common: `{"zone":"fake-1a"}`}
		},
	}
}

// TeamKey opens the team's account in the fake cloud, and TeamAccount is its name: no other key
// shows what is in there.
const (
	TeamKey     = "key-of-the-team"
	TeamAccount = "team"
)

// OpenStack is its simulator. There is a resource of each kind: every Machine has a floating IP,
// one template has its root on a volume, and one a trunk and a second volume.
func OpenStack() Cloud {
	const place = `"availabilityZone":"nova","image":"tiny-raw","floatingIpPool":"public","securityGroups":["default"]`
	return Cloud{
		Provider: stack.OpenStack(),
		Operations: []string{
			"", "CreatePort", "ListPorts", "DeletePort", "CreateServer", "CreateServer", "CreateServer", "ListServers", "DeleteServer", "DeleteServer",
			"CreateFloatingIP", "CreateFloatingIP", "ListFloatingIPs", "DeleteFloatingIP", "CreateTrunk", "DeleteTrunk", "GetServer", "Authenticate",
		},
		Args:       []string{"--boot-latency=200ms", "--delete-latency=200ms"},
		Driver:     "millwright-driver-openstack",
		DriverArgs: []string{"--create-settle=2s", "--poll-interval=200ms", "--request-timeout=5s"},
		Templates: []Template{
			{
				Kubelet: "1.36.3", Spec: `{` + place + `,"flavor":"m1.small","network":"demo-net"}`,
				Resources: map[string]int{"vm": 1, "port": 1, "floatingip": 1},
			},
			{
				Kubelet: "1.36.2", Spec: `{` + place + `,"flavor":"m1.nodisk","network":"demo-net","rootDiskSizeGB":20}`,
				Resources: map[string]int{"vm": 1, "port": 1, "floatingip": 1, "volume": 1},
			},
			{
				Kubelet: "1.36.1",
				Spec: `{` + place + `,"flavor":"m1.medium","ports":[{"network":"demo-net","trunk":true},{"network":"metakube-mmxfcmgjkx"}],
					"additionalBlockDevices":[{"name":"data","sizeGiB":10}]}`,
				Resources: map[string]int{"vm": 1, "port": 2, "floatingip": 1, "trunk": 1, "volume": 1},
			},
		},
		Team: func(environment map[string]string) Team {
			return Team{
				Template: Template{
					Kubelet: "1.36.0", Spec: `{` + place + `,"flavor":"m1.small"}`,
					Resources: map[string]int{"vm": 1, "port": 1, "floatingip": 1},
				},
				Secret: map[string]string{
					"username": environment["OS_USERNAME"], "userDomainName": environment["OS_USER_DOMAIN_NAME"], "password": environment["OS_PASSWORD"],
					"projectName": environment["OS_PROJECT_NAME"], "projectDomainName": environment["OS_PROJECT_DOMAIN_NAME"],
				},
				Common: `{"identityEndpoint":"` + environment["OS_AUTH_URL"] + `","region":"` + environment["OS_REGION_NAME"] + `","network":"demo-net"}`,
			}
		},
	}
}

// OpenStackServices are real services, which a file in JSON names: see [stack.OpenStackServices].
// They take their time.
func OpenStackServices(file string) Cloud {
	c := OpenStack()
	c.Provider, c.Args = stack.OpenStackServices(file), nil
	c.DriverArgs = []string{"--create-settle=20s", "--poll-interval=1s"}
	return c
}
