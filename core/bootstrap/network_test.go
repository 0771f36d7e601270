package bootstrap

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

func TestLIFE2_NetworkOfAMachine(t *testing.T) {
	m := worker(func(m *clusterv1alpha1.Machine) {
		m.Spec.ProviderSpec.Value.Network = clusterv1alpha1.MachineNetwork{
			CIDR: "fd00::a/64", Gateway: "fd00::1", DNS: clusterv1alpha1.MachineDNS{Servers: []string{"fd00::2", "10.0.0.2"}},
		}
	})
	files, err := networkFiles(m, cluster())
	want := []File{
		{Path: networkPath, Content: "[Match]\nName=en* eth*\n\n[Network]\nDHCP=no\nAddress=fd00::a/64\nGateway=fd00::1\n"},
		{Path: resolvedPath, Content: "[Resolve]\nDNS=fd00::2 10.0.0.2\nDomains=~.\n"},
	}
	if diff := cmp.Diff(want, files); err != nil || diff != "" {
		t.Errorf("(-want +got, %v):\n%s", err, diff)
	}
	if files, err := networkFiles(worker(), cluster()); err != nil || files != nil {
		t.Errorf("a machine without a network of its own has %v, %v", files, err)
	}
}

func TestNetworkIsRefused(t *testing.T) {
	for names, network := range map[string]clusterv1alpha1.MachineNetwork{
		"network.cidr":           {CIDR: "192.168.1.10", Gateway: "192.168.1.1"},
		"network.gateway: \"a\"": {CIDR: "192.168.1.10/24", Gateway: "a"},
		"network.gateway: \"f":   {CIDR: "192.168.1.10/24", Gateway: "fe80::1%eth0"},
		"go together":            {CIDR: "192.168.1.10/24"},
		"same IP family":         {CIDR: "192.168.1.10/24", Gateway: "fd00::1"},
		"network.dns.servers[1]": {DNS: clusterv1alpha1.MachineDNS{Servers: []string{"10.0.0.2", "dns.example.com"}}},
		"network.ipFamily":       {IPFamily: "IPv5"},
	} {
		m := worker(func(m *clusterv1alpha1.Machine) { m.Spec.ProviderSpec.Value.Network = network })
		if err := Check(m, cluster()); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%+v: %v, without %q", network, err, names)
		}
	}
}

// The kubelet chooses its address by the machine's IP family, else by the cluster's where a cloud
// controller manager sets the addresses later.
func TestLIFE2_IPFamilyOfTheNode(t *testing.T) {
	for _, tc := range []struct {
		name       string
		family     clusterv1alpha1.IPFamily
		external   bool
		clusterDNS string
		want       string
	}{
		{"nothing said", "", false, "10.96.0.10", ""},
		{"cloud controller manager, IPv4", "", true, "10.96.0.10", "0.0.0.0"},
		{"cloud controller manager, IPv6", "", true, "fd00::a", "::"},
		{"IPv6 in a cluster of IPv4", clusterv1alpha1.IPv6Family, true, "10.96.0.10", "::"},
		{"IPv4 alone", clusterv1alpha1.IPv4Family, false, "fd00::a", "0.0.0.0"},
		{"dual-stack, IPv6 first", clusterv1alpha1.IPv6IPv4Family, true, "10.96.0.10", "::"},
		{"dual-stack, IPv4 first", clusterv1alpha1.IPv4IPv6Family, true, "fd00::a", "0.0.0.0"},
	} {
		m := worker(func(m *clusterv1alpha1.Machine) { m.Spec.ProviderSpec.Value.Network.IPFamily = tc.family })
		args, err := kubeletArgs(m, cluster(func(c *Config) { c.ExternalCloudProvider, c.ClusterDNS = tc.external, []string{tc.clusterDNS} }))
		var got string
		for _, arg := range args {
			if value, is := strings.CutPrefix(arg, "--node-ip="); is {
				got = value
			}
		}
		if err != nil || got != tc.want {
			t.Errorf("%s: --node-ip=%s, %v, want %s", tc.name, got, err, tc.want)
		}
	}
}
