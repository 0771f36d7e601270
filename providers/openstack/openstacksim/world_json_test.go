package openstacksim

import (
	"strings"
	"testing"
)

func replaceAll(text, old, other string) string { return strings.ReplaceAll(text, old, other) }

func TestReadWorld(t *testing.T) {
	for _, test := range []struct {
		name, text string
		ok         bool
	}{
		{"nothing", `{}`, true},
		{"network", `{"networks": [{"name": "n", "project": "demo", "subnets": [{"name": "s", "cidr": "10.9.0.0/16"}]}]}`, true},
		{"unknown field", `{"nonsense": 1}`, false},
		{"subnet that is none", `{"networks": [{"name": "n", "subnets": [{"cidr": "10.9"}]}]}`, false},
		{"no JSON", `regions: [a]`, false},
	} {
		if _, err := ReadWorld(strings.NewReader(test.text)); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestTheSeedsManifestsFindWhatTheyName(t *testing.T) {
	w := open(t, Options{})
	w.check([]apiCase{
		{"region", "GET", "/v3/auth/catalog", "", 200, `"region":"dbl"`},
		{"zone", "GET", "/compute/v2.1/os-availability-zone", "", 200, "dbl1"},
		{"flavor", "GET", "/compute/v2.1/flavors", "", 200, `"name":"m1.micro"`},
		{"image", "GET", "/image/v2/images?name=Ubuntu+Bionic+18.04+(2019-03-27)", "", 200, `"status":"active"`},
		{"image", "GET", "/image/v2/images?name=Ubuntu+18.04+LTS+sys11+optimized+-+2018-08-13", "", 200, `"status":"active"`},
		{"image", "GET", "/image/v2/images?name=Ubuntu+Noble+24.04+(2024-08-01)", "", 200, `"status":"active"`},
		{"pool", "GET", "/networking/v2.0/networks?name=ext-net&router:external=true", "", 200, `"router:external":true`},
		{"network", "GET", "/networking/v2.0/networks?name=kubermatic-92r62cx8j6", "", 200, "86db31c3-d5dd-4a88-bc92-ab8a148062c8"},
		{"subnet", "GET", "/networking/v2.0/subnets/2969ae04-a429-4c1b-83e3-2f76fc3a342a", "", 200, "metakube-mmxfcmgjkx"},
		{"security group", "GET", "/networking/v2.0/security-groups?name=metakube-mmxfcmgjkx", "", 200, "metakube-mmxfcmgjkx"},
		{"server group", "GET", "/compute/v2.1/os-server-groups/fe9dcd44-f08a-492a-9e64-4e38e1d51573", "", 200, "soft-anti-affinity"},
	})
}
