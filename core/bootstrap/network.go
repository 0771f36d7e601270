package bootstrap

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

const (
	// networkPath sorts before the files that netplan makes for systemd-networkd
	// (10-netplan-*.network) and before Flatcar's own (zz-default.network): the first file that
	// matches an interface counts.
	networkPath = "/etc/systemd/network/05-millwright.network"
	// resolvedPath is read by systemd-resolved.
	resolvedPath = "/etc/systemd/resolved.conf.d/millwright.conf"
)

// networkFiles set up a fixed address and DNS servers of the machine's own.
func networkFiles(m *clusterv1alpha1.Machine, _ Config) ([]File, error) {
	network := m.Spec.ProviderSpec.Value.Network
	if err := checkNetwork(network); err != nil {
		return nil, err
	}
	var files []File
	if network.CIDR != "" {
		files = append(files, File{Path: networkPath, Content: fmt.Sprintf(
			"[Match]\nName=en* eth*\n\n[Network]\nDHCP=no\nAddress=%s\nGateway=%s\n", network.CIDR, network.Gateway)})
	}
	if len(network.DNS.Servers) > 0 {
		// The domain "~." has these servers asked for all names.
		files = append(files, File{Path: resolvedPath, Content: fmt.Sprintf(
			"[Resolve]\nDNS=%s\nDomains=~.\n", strings.Join(network.DNS.Servers, " "))})
	}
	return files, nil
}

// checkNetwork repeats the rules of the API, for Machines that no API server has checked.
func checkNetwork(network clusterv1alpha1.MachineNetwork) error {
	var errs []error
	address, err := netip.ParsePrefix(network.CIDR)
	if network.CIDR != "" && err != nil {
		errs = append(errs, fmt.Errorf("network.cidr: %q is no address with the length of its network's prefix", network.CIDR))
	}
	gateway, err := netip.ParseAddr(network.Gateway)
	if network.Gateway != "" && (err != nil || gateway.Zone() != "") {
		errs = append(errs, fmt.Errorf("network.gateway: %q is no IP address", network.Gateway))
	}
	if (network.CIDR == "") != (network.Gateway == "") {
		errs = append(errs, errors.New("network: cidr and gateway go together"))
	}
	if address.IsValid() && gateway.IsValid() && address.Addr().Is4() != gateway.Is4() {
		errs = append(errs, fmt.Errorf("network.gateway: %q must be of the same IP family as cidr", network.Gateway))
	}
	for i, server := range network.DNS.Servers {
		if address, err := netip.ParseAddr(server); err != nil || address.Zone() != "" {
			errs = append(errs, fmt.Errorf("network.dns.servers[%d]: %q is no IP address", i, server))
		}
	}
	switch network.IPFamily {
	case "", clusterv1alpha1.IPv4Family, clusterv1alpha1.IPv6Family, clusterv1alpha1.IPv4IPv6Family, clusterv1alpha1.IPv6IPv4Family:
	default:
		errs = append(errs, fmt.Errorf("network.ipFamily: %q is none of IPv4, IPv6, IPv4+IPv6, IPv6+IPv4", network.IPFamily))
	}
	return errors.Join(errs...)
}
