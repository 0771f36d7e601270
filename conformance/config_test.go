package conformance

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWrongConfigsAreRefused(t *testing.T) {
	good := func() Config {
		return Config{Endpoint: "unix:///run/driver.sock", ProviderSpec: json.RawMessage(`{"flavor":"small"}`), State: "state"}
	}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"nothing wrong":          {func(*Config) {}, ""},
		"no endpoint":            {func(c *Config) { c.Endpoint = "" }, "endpoint: "},
		"a TCP endpoint":         {func(c *Config) { c.Endpoint = "localhost:9443" }, "endpoint: "},
		"a TCP backend":          {func(c *Config) { c.Backend = "localhost:9443" }, "backend: "},
		"no spec":                {func(c *Config) { c.ProviderSpec = nil }, "providerSpec: "},
		"a spec that is a list":  {func(c *Config) { c.ProviderSpec = json.RawMessage(`[]`) }, "providerSpec: "},
		"a conflict of no spec":  {func(c *Config) { c.ConflictingSpec = json.RawMessage(`"large"`) }, "conflictingSpec: "},
		"no folder of files":     {func(c *Config) { c.DriverFiles = []string{"not/there"} }, `driverFiles: "not/there" is no folder`},
		"fewer cycles than none": {func(c *Config) { c.Cycles = -1 }, "cycles: is -1"},
		"a crowd":                {func(c *Config) { c.Crowd = 2 }, ""},
		"a crowd of one":         {func(c *Config) { c.Crowd = 1 }, "crowd: is 1"},
		"a crowd below none":     {func(c *Config) { c.Crowd = -1 }, "crowd: is -1"},
		"an unknown focus":       {func(c *Config) { c.Focus = []string{"create/hapy"} }, `focus: there is no check "create/hapy"`},
		"a group as focus":       {func(c *Config) { c.Focus = []string{"create"} }, ""},
		"an unknown waiver":      {func(c *Config) { c.Waive = map[string]string{"x": "why"} }, `waive: there is no check "x"`},
		"a waiver without a why": {func(c *Config) { c.Waive = map[string]string{"create/happy": ""} }, `waive: say why "create/happy"`},
	} {
		c := good()
		tc.change(&c)
		_, err := c.complete()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// Real clouds have quotas, and cost money.
func TestManyMachinesAreMadeOnlyInTestClouds(t *testing.T) {
	for name, tc := range map[string]struct {
		backend   string
		crowd     int
		wantCrowd int
	}{
		"a real cloud":               {"", 0, 0},
		"a real cloud with room":     {"", 20, 20},
		"a test cloud":               {"unix:///run/cloud.sock", 0, 100},
		"a test cloud with a choice": {"unix:///run/cloud.sock", 5, 5},
	} {
		c, err := Config{
			Endpoint: "unix:///run/driver.sock", Backend: tc.backend, ProviderSpec: json.RawMessage(`{}`), State: "state", Crowd: tc.crowd,
		}.complete()
		if err != nil || c.Crowd != tc.wantCrowd {
			t.Errorf("%s: makes %d machines at once, want %d (%v)", name, c.Crowd, tc.wantCrowd, err)
		}
	}
}

func TestSecretsComeFromWhereTheyAre(t *testing.T) {
	t.Setenv("CONFORMANCE_TEST_SECRET", "from the environment")
	got, err := resolve(map[string]Secret{"a": {Value: "given"}, "b": {Env: "CONFORMANCE_TEST_SECRET"}})
	if err != nil || string(got["a"]) != "given" || string(got["b"]) != "from the environment" {
		t.Errorf("got %q, %v", got, err)
	}
	_, err = resolve(map[string]Secret{"a": {Env: "CONFORMANCE_TEST_NOT_SET"}, "b": {File: "not/there"}})
	for _, want := range []string{"secret a: the variable CONFORMANCE_TEST_NOT_SET is not set", "secret b: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// IDs are what reports, waivers and --focus use.
func TestIDsAreGroupsAndNames(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Checks() {
		if strings.Count(c.ID, "/") != 1 || seen[c.ID] || c.Rule == "" || c.run == nil || c.Level != Must && c.Level != Should {
			t.Errorf("%q: has no group, comes twice or lacks something", c.ID)
		}
		seen[c.ID] = true
	}
}
