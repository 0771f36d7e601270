package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// places leaves out where things stand in their spec. TestPortsSayWhereTheyStand says all of it for
// ports.
var places = cmp.Options{
	cmpopts.IgnoreFields(Port{}, "At", "NetworkField", "SubnetField"), cmpopts.IgnoreFields(Spec{}, "ServerGroupField"),
}

func TestPorts(t *testing.T) {
	none := []Reference{}
	for name, tc := range map[string]struct {
		spec string
		want []Port
	}{
		"nothing":                    {`{}`, []Port{{}}},
		"a network":                  {`{"network":"n"}`, []Port{{Network: "n"}}},
		"a subnet":                   {`{"subnet":"s"}`, []Port{{Subnet: "s"}}},
		"both":                       {`{"network":"n","subnet":"s"}`, []Port{{Network: "n", Subnet: "s"}}},
		"networks":                   {`{"networks":["a","b","a",""]}`, []Port{{Network: "a"}, {Network: "b"}}},
		"one network and its subnet": {`{"networks":["a"],"subnet":"s"}`, []Port{{Network: "a", Subnet: "s"}}},
		"a network before others":    {`{"networks":["a","b"],"network":"b","subnet":"s"}`, []Port{{Network: "b", Subnet: "s"}, {Network: "a"}}},
		"all that Cluster API has": {
			`{"ports":[{"network":"a","tags":["x","","x","y"],"hostID":"h","propagateUplinkStatus":"true","valueSpecs":[{"name":"n","key":"k","value":"v"}]}]}`,
			[]Port{{Network: "a", Tags: []string{"x", "y"}, HostID: "h", PropagateUplinkStatus: new(true), ValueSpecs: map[string]string{"k": "v"}}},
		},
		"the addresses of pods": {
			`{"podNetworkCIDRs":["10.244.0.0/16","fd00::/48",""],"ports":[{"network":"a","allowedAddressPairs":[{"ipAddress":"10.0.0.1"}]},{"network":"b","disablePortSecurity":true},{"id":"c"}]}`,
			[]Port{
				{Network: "a", AllowedAddressPairs: []AddressPair{{IPAddress: "10.0.0.1"}, {IPAddress: "10.244.0.0/16"}, {IPAddress: "fd00::/48"}}},
				{Network: "b", DisablePortSecurity: true, SecurityGroups: none}, {ID: "c"},
			},
		},
		"without port security":    {`{"networks":["a","b"],"disablePortSecurity":"true","securityGroups":["g"]}`, []Port{{Network: "a", DisablePortSecurity: true, SecurityGroups: none}, {Network: "b", DisablePortSecurity: true, SecurityGroups: none}}},
		"a port that says nothing": {`{"network":"n","subnet":"s","ports":[null,{"trunk":true},{"network":"m"},{"subnet":"t"},{"id":"x"}]}`, []Port{{Network: "n", Subnet: "s"}, {Network: "n", Subnet: "s", Trunk: true}, {Network: "m"}, {Subnet: "t"}, {ID: "x"}}},
		"an existing port":         {`{"ports":[{"id":"x","network":"","trunk":false,"disablePortSecurity":"false","securityGroups":[],"profile":{}},{"id":"y"}],"disablePortSecurity":true}`, []Port{{ID: "x"}, {ID: "y"}}},
		"addresses": {
			`{"ports":[{"network":"n","fixedIPs":[{"subnet":"s"},{"ipAddress":"10.0.0.5"},{"subnet":"s6","ipAddress":"2001:db8::5"}]}]}`,
			[]Port{{Network: "n", FixedIPs: []FixedIP{{Subnet: "s"}, {IPAddress: "10.0.0.5"}, {Subnet: "s6", IPAddress: "2001:db8::5"}}}},
		},
		"addresses in a subnet": {
			`{"ports":[{"subnet":"s","fixedIPs":[{"ipAddress":"10.0.0.5"}]}]}`, []Port{{FixedIPs: []FixedIP{{Subnet: "s", IPAddress: "10.0.0.5"}}}},
		},
		"addresses in the machine's subnet": {
			`{"network":"n","subnet":"s","ports":[{"fixedIPs":[{"ipAddress":"10.0.0.5"}]},{"fixedIPs":[{"subnet":"t"}]}]}`,
			[]Port{{Network: "n", FixedIPs: []FixedIP{{Subnet: "s", IPAddress: "10.0.0.5"}}}, {FixedIPs: []FixedIP{{Subnet: "t"}}}},
		},
		"security": {
			`{"securityGroups":["g"],"disablePortSecurity":true,"ports":[{"network":"a"},{"network":"b","disablePortSecurity":false,"securityGroups":["h",""]},{"network":"c","disablePortSecurity":"false"},{"network":"d","disablePortSecurity":false,"securityGroups":[]}]}`,
			[]Port{{Network: "a", DisablePortSecurity: true, SecurityGroups: none}, {Network: "b", SecurityGroups: []Reference{"h"}}, {Network: "c"}, {Network: "d", SecurityGroups: none}},
		},
		"what a filter is for": {
			`{"network":{"tags":["b","a"]},"securityGroups":[{"description":"d"},"g"],"ports":[{"subnet":{"name":"s","tags":[]}},{"securityGroups":[{"tags":["t"]}]}]}`,
			[]Port{{Subnet: `{"name":"s"}`}, {Network: `{"tags":["a","b"]}`, SecurityGroups: []Reference{`{"tags":["t"]}`}}},
		},
		"pairs": {
			`{"ports":[{"network":"n","allowedAddressPairs":[{"ipAddress":"10.0.0.0/8"},{"ipAddress":"::1","macAddress":"52:54:00:12:34:56"}]}]}`,
			[]Port{{Network: "n", AllowedAddressPairs: []AddressPair{{IPAddress: "10.0.0.0/8"}, {IPAddress: "::1", MACAddress: "52:54:00:12:34:56"}}}},
		},
		"cards": {
			`{"ports":[{"network":"n","vnicType":"direct","trunk":"true","profile":{"ovsHWOffload":true,"trustedVF":"true","physical_network":"p","tag":7}},
			  {"network":"m","profile":{"ovsHWOffload":false,"trustedVF":"false"}}]}`,
			[]Port{
				{Network: "n", VNICType: "direct", Trunk: true, Profile: map[string]any{"capabilities": []any{"switchdev"}, "trusted": true, "physical_network": "p", "tag": 7.0}},
				{Network: "m"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw := with(t, tc.spec)
			got, err := Read(raw, nil, operator())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Ports, places); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if found := violated(raw, nil, Environment{}); found != "" {
				t.Errorf("%s is found wrong", found)
			}
		})
	}
}

func TestPortsSayWhereTheyStand(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"nothing":          {`{}`, []string{"network subnet"}},
		"both":             {`{"network":"n","subnet":"s"}`, []string{"network subnet"}},
		"networks":         {`{"networks":["a","","a","b"]}`, []string{"networks[0] subnet", "networks[3] subnet"}},
		"a network before": {`{"networks":["a","b"],"network":"b"}`, []string{"network subnet", "networks[0] subnet"}},
		"ports":            {`{"ports":[{"network":"a"},{"subnet":"s"}]}`, []string{"ports[0].network ports[0].subnet", "ports[1].network ports[1].subnet"}},
		"inherited":        {`{"network":"n","ports":[{"trunk":true},{"network":"m"}]}`, []string{"network ports[0].subnet", "ports[1].network ports[1].subnet"}},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := Read(with(t, tc.spec), nil, operator())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range read.Ports {
				got = append(got, p.NetworkField+" "+p.SubnetField)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPortsThatAreWrong(t *testing.T) {
	var networks []string
	for i := range MaxPorts + 1 {
		networks = append(networks, fmt.Sprintf(`"n%d"`, i))
	}
	for name, tc := range map[string]struct{ spec, wrong string }{
		"a tag with a comma":             {`{"ports":[{"network":"a","tags":["b","c,d"]}]}`, "ports[0].tags[1]"},
		"a value of no key":              {`{"ports":[{"network":"a","valueSpecs":[{"value":"v"}]}]}`, "ports[0].valueSpecs[0].key"},
		"two values of one key":          {`{"ports":[{"network":"a","valueSpecs":[{"key":"k"},{"key":"k"}]}]}`, "ports[0].valueSpecs[1].key"},
		"tags of a port of others":       {`{"ports":[{"id":"a","tags":["b"]}]}`, "ports[0].tags"},
		"pods of no network":             {`{"podNetworkCIDRs":["10.244.0.0"]}`, "podNetworkCIDRs[0]"},
		"networks beside ports":          {`{"networks":["a","b"],"ports":[{"network":"c"}]}`, "networks"},
		"too many networks":              {`{"networks":[` + strings.Join(networks, ",") + `]}`, "networks"},
		"too many with network":          {`{"network":"n","networks":[` + strings.Join(networks[:8], ",") + `]}`, "networks"},
		"too many ports":                 {`{"ports":[` + strings.Repeat(`{"network":"n"},`, 8) + `{}]}`, "ports"},
		"a subnet of several networks":   {`{"networks":["a","b"],"subnet":"s"}`, "subnet"},
		"an existing port twice":         {`{"ports":[{"id":"a"},{"id":"b"},{"id":"a"}]}`, "ports[2].id"},
		"an existing port changed":       {`{"ports":[{"id":"a","network":"n","subnet":"s","fixedIPs":[{}],"securityGroups":["g"],"disablePortSecurity":true,"allowedAddressPairs":[{}],"vnicType":"x","profile":{"a":1},"trunk":true}]}`, "ports[0].allowedAddressPairs ports[0].disablePortSecurity ports[0].fixedIPs ports[0].network ports[0].profile ports[0].securityGroups ports[0].subnet ports[0].trunk ports[0].vnicType"},
		"an existing port, and nonsense": {`{"ports":[{"id":"a","trunk":"x","disablePortSecurity":"x"}]}`, "ports[0].disablePortSecurity ports[0].trunk"},
		"an address that says nothing":   {`{"ports":[{"fixedIPs":[{}]}]}`, "ports[0].fixedIPs[0]"},
		"an address that is none":        {`{"ports":[{"fixedIPs":[{"ipAddress":"10.0.0"},{"ipAddress":"fe80::1%eth0"},{"ipAddress":"10.0.0.0/8"}]}]}`, "ports[0].fixedIPs[0].ipAddress ports[0].fixedIPs[1].ipAddress ports[0].fixedIPs[2].ipAddress"},
		"pairs that are none":            {`{"ports":[{"allowedAddressPairs":[{"ipAddress":"10.0.0.0/33"},{},{"ipAddress":"10.0.0.1","macAddress":"52:54:00"},{"ipAddress":"10.0.0.1","macAddress":"02:00:5e:10:00:00:00:01"}]}]}`, "ports[0].allowedAddressPairs[0].ipAddress ports[0].allowedAddressPairs[1].ipAddress ports[0].allowedAddressPairs[2].macAddress ports[0].allowedAddressPairs[3].macAddress"},
		"pairs without port security":    {`{"disablePortSecurity":true,"ports":[{"allowedAddressPairs":[{"ipAddress":"10.0.0.1"}]}]}`, "ports[0].allowedAddressPairs"},
		"groups without port security":   {`{"disablePortSecurity":true,"ports":[{"securityGroups":["g"]}]}`, "ports[0].securityGroups"},
		"a card that nobody knows":       {`{"ports":[{"vnicType":"Normal"}]}`, "ports[0].vnicType"},
		"no truth":                       {`{"ports":[{"trunk":"x","disablePortSecurity":7}]}`, "ports[0].disablePortSecurity ports[0].trunk"},
		"no truth in the profile":        {`{"ports":[{"profile":{"ovsHWOffload":"x","trustedVF":{}}}]}`, "ports[0].profile.ovsHWOffload ports[0].profile.trustedVF"},
		"a floating IP for no port":      {`{"floatingIpPool":"e","ports":[{"id":"a"},{"id":"b"}]}`, "floatingIpPool"},
	} {
		t.Run(name, func(t *testing.T) {
			raw := with(t, tc.spec)
			_, err := Read(raw, nil, operator())
			got, _ := wrongFields(t, err)
			fields := strings.Fields(got)
			slices.Sort(fields)
			if diff := cmp.Diff(strings.Fields(tc.wrong), fields); diff != "" {
				t.Errorf("%v: -want +got:\n%s", err, diff)
			}
			if found := violated(raw, nil, Environment{}); found != tc.wrong {
				t.Errorf("Validate finds %s", found)
			}
		})
	}
}

func TestAFloatingIPNeedsOnePortOfItsOwn(t *testing.T) {
	if _, err := Read(with(t, `{"floatingIpPool":"e","ports":[{"id":"a"},{"network":"n"}]}`), nil, operator()); err != nil {
		t.Error(err)
	}
}
