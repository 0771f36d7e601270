package manager

import (
	"strings"
	"testing"

	"github.com/millwright-dev/millwright/core/specresolver"
)

func TestProfilesAreServedOnLoopbackOnly(t *testing.T) {
	cases := map[string]struct {
		address string
		ok      bool
	}{
		"off, the default":               {"", true},
		"IPv4":                           {"127.0.0.1:6060", true},
		"IPv6":                           {"[::1]:6060", true},
		"by name":                        {"localhost:6060", true},
		"every address of the host":      {":6060", false},
		"an address that others reach":   {"10.0.0.1:6060", false},
		"a name that could be anything":  {"example.org:6060", false},
		"no port, so no address at all":  {"127.0.0.1", false},
		"the way to switch others off":   {"0", false},
		"the unspecified address, in v6": {"[::]:6060", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Options{ProfilingAddress: tc.address}.withDefaults().validate()
			if (err == nil) != tc.ok || err != nil && !strings.Contains(err.Error(), "--profiling-bind-address="+tc.address) {
				t.Errorf("validate() = %v, want it to pass: %v", err, tc.ok)
			}
		})
	}
}

// A Secret that everybody may refer to must not go to whatever address somebody writes.
func TestSAFE8_SharedSecretsNeedAListOfAddresses(t *testing.T) {
	o := Options{SecretNamespaces: []string{"shared", "more"}}.withDefaults()
	err := o.validate()
	if err == nil || !strings.Contains(err.Error(), "--secret-namespaces=shared,more") || !strings.Contains(err.Error(), "--allow-endpoint") {
		t.Errorf("validate() = %v", err)
	}
	allowed, err := specresolver.ParseEndpointPattern("*.example.com")
	if err != nil {
		t.Fatal(err)
	}
	o.Endpoints = append(o.Endpoints, allowed)
	if err := o.validate(); err != nil {
		t.Error(err)
	}
}

func TestDurationsAreNotNegative(t *testing.T) {
	err := Options{NodeUnreachableAfter: -1, DrainTimeout: -1, NodeVolumeDetachTimeout: -1}.withDefaults().validate()
	for _, flag := range []string{"--node-unreachable-after=-1ns", "--drain-timeout=-1ns", "--node-volume-detach-timeout=-1ns"} {
		if err == nil || !strings.Contains(err.Error(), flag+": must not be negative") {
			t.Errorf("validate() = %v, want it to name %s", err, flag)
		}
	}
	if errs := (Options{}).notNegative(); len(errs) > 0 {
		t.Errorf("the defaults are refused: %v", errs)
	}
}
