package main

import (
	"encoding/json"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/conformance"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
)

// The driver keeps to the contract: as a process that the harness starts and kills, against the
// simulator.
func TestConformance(t *testing.T) {
	s := simulate(t, openstacksim.Options{World: openstacksim.DefaultWorld().With(openstacksim.World{Networks: []openstacksim.Network{
		// Each project has a network of this name.
		{Name: "net", Project: "demo", Subnets: []openstacksim.Subnet{{Name: "demo", CIDR: "10.10.0.0/16"}}},
		{Name: "net", Project: "alt", Subnets: []openstacksim.Subnet{{Name: "alt", CIDR: "10.11.0.0/16"}}},
	}})})
	c := config(t, cloud{identityEndpoint: s.identityEndpoint, network: "net", user: "demo", other: "alt", password: openstacksim.Password})
	c.Endpoint, c.Backend, c.Cycles = launched(t, "--create-settle", "2s", "--poll-interval", "20ms"), s.hooks(), 100
	c.Timeouts.Running.Duration, c.Timeouts.Gone.Duration = 30*time.Second, 30*time.Second
	c.Profile, c.CloudPage = conformance.ProfileFault, 20
	conformance.Run(t, c)
}

// The same against the real services, where MILLWRIGHT_OPENSTACK says how to reach them: `make
// test-openstack`.
func TestConformanceOnRealServices(t *testing.T) {
	file := os.Getenv("MILLWRIGHT_OPENSTACK")
	if file == "" {
		t.Skip("no real services: MILLWRIGHT_OPENSTACK is not set, see make test-openstack")
	}
	services, err := openstacksim.ReadUpstream(file)
	if err != nil {
		t.Fatal(err)
	}
	s := simulate(t, openstacksim.Options{Upstream: services})
	other := "alt"
	if services.Member == other {
		other = "demo"
	}
	c := config(t, cloud{
		identityEndpoint: s.identityEndpoint, network: services.Member + "-net", user: services.Member, other: other, password: services.Password,
	})
	c.Backend = s.hooks()
	c.Endpoint = launched(t, "--create-settle", "20s", "--poll-interval", "1s")
	c.Timeouts.Running.Duration, c.Timeouts.Gone.Duration = 5*time.Minute, 5*time.Minute
	c.Crowd = 10
	conformance.Run(t, c)
}

// cloud is what a driver is tried on: by a user, whose project has the same name, with a network of
// it.
type cloud struct{ identityEndpoint, network, user, other, password string }

// config is what the harness tries the driver with.
func config(t *testing.T, on cloud) conformance.Config {
	t.Helper()
	return conformance.Config{
		State: t.TempDir(), Output: t.Output(),
		ProviderSpec:    on.providerSpec(t, "m1.tiny"),
		ConflictingSpec: on.providerSpec(t, "m1.large"),
		Secrets:         login(on.user, on.password),
		OtherSecrets:    login(on.other, on.password),
		BadSecrets:      login(on.user, "not the password"),
	}
}

// launched is the endpoint of this executable as a driver.
func launched(t *testing.T, arguments ...string) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asCommand, "1")
	arguments = append(arguments, "--log-level", "DEBUG")
	return "exec://" + path + "?" + url.Values{"arg": arguments, "env": {asCommand}}.Encode()
}

// providerSpec is that of a machine of a flavor.
func (on cloud) providerSpec(t *testing.T, flavor string) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"identityEndpoint": on.identityEndpoint, "region": "RegionOne", "domainName": "Default", "flavor": flavor, "image": "tiny-raw", "network": on.network,
		"securityGroups": []string{"default"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// login are the secrets of a user, whose project has the same name.
func login(name, password string) map[string]conformance.Secret {
	return map[string]conformance.Secret{
		"username": {Value: name}, "password": {Value: password}, "projectName": {Value: name},
	}
}
