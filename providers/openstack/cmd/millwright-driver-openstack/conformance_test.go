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

// The driver keeps to the contract: as a process that the harness starts and kills, against the simulator.
func TestConformance(t *testing.T) {
	s := simulate(t, openstacksim.Options{World: openstacksim.DefaultWorld().With(openstacksim.World{Networks: []openstacksim.Network{
		// Each project has a network of this name.
		{Name: "net", Project: "demo", Subnets: []openstacksim.Subnet{{Name: "demo", CIDR: "10.10.0.0/16"}}},
		{Name: "net", Project: "alt", Subnets: []openstacksim.Subnet{{Name: "alt", CIDR: "10.11.0.0/16"}}},
	}})})
	conformance.Run(t, config(t, s))
}

// config is what the harness tries the driver with.
func config(t *testing.T, s simulator) conformance.Config {
	t.Helper()
	c := conformance.Config{
		Endpoint: launched(t), Backend: s.hooks(), State: t.TempDir(), Output: t.Output(), Cycles: 100,
		ProviderSpec:    providerSpec(t, s, "m1.tiny"),
		ConflictingSpec: providerSpec(t, s, "m1.large"),
		Secrets:         login("demo", openstacksim.Password),
		OtherSecrets:    login("alt", openstacksim.Password),
		BadSecrets:      login("demo", "not the password"),
	}
	c.Timeouts.Running.Duration, c.Timeouts.Gone.Duration = 30*time.Second, 30*time.Second
	return c
}

// launched is the endpoint of this executable as a driver.
func launched(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asCommand, "1")
	arguments := []string{"--create-settle", "2s", "--poll-interval", "20ms", "--log-level", "DEBUG"}
	return "exec://" + path + "?" + url.Values{"arg": arguments, "env": {asCommand}}.Encode()
}

func providerSpec(t *testing.T, s simulator, flavor string) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"identityEndpoint": s.identityEndpoint, "region": "RegionOne", "domainName": "Default", "flavor": flavor, "image": "tiny-raw", "network": "net",
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
