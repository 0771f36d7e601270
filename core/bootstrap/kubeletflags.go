package bootstrap

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// kubeletFiles returns the files that configure the kubelet.
func kubeletFiles(m *clusterv1alpha1.Machine, c Config) ([]File, error) {
	args, err := kubeletArgs(m, c)
	if err != nil {
		return nil, err
	}
	return []File{
		{Path: "/etc/default/kubelet", Content: fmt.Sprintf("KUBELET_EXTRA_ARGS=%q\n", strings.Join(args, " "))},
		{Path: "/etc/millwright/kubelet-version", Content: kubeletVersion(m) + "\n"},
	}, nil
}

// kubeletVersion has no leading v.
func kubeletVersion(m *clusterv1alpha1.Machine) string {
	return strings.TrimPrefix(m.Spec.Versions.Kubelet, "v")
}

// kubeletArgs returns the kubelet's arguments. Everything in them is checked, since systemd splits
// them at spaces.
func kubeletArgs(m *clusterv1alpha1.Machine, c Config) ([]string, error) {
	args := []string{"--hostname-override=" + m.Name}
	labels, err := labelPairs(NodeLabels(m))
	if err != nil {
		return nil, err
	}
	if len(labels) > 0 {
		args = append(args, "--node-labels="+strings.Join(labels, ","))
	}
	family := m.Spec.ProviderSpec.Value.Network.IPFamily
	if c.ExternalCloudProvider {
		args = append(args, "--cloud-provider=external")
	}
	// Without an address the kubelet would ask for no serving certificate before the cloud
	// controller manager has set one.
	if c.ExternalCloudProvider || family != "" {
		args = append(args, "--node-ip="+unspecifiedAddress(family, c.ClusterDNS))
	}
	return args, nil
}

// unspecifiedAddress has the kubelet choose an address of the machine's first IP family, or else
// of that of the cluster's DNS server. The kubelet refuses the unspecified addresses of both
// families at once (k8s.io/component-helpers/node/util, ParseNodeIPArgument).
func unspecifiedAddress(family clusterv1alpha1.IPFamily, clusterDNS []string) string {
	isIPv6 := strings.HasPrefix(string(family), string(clusterv1alpha1.IPv6Family))
	if family == "" && len(clusterDNS) > 0 {
		address, err := netip.ParseAddr(clusterDNS[0])
		isIPv6 = err == nil && address.Is6()
	}
	if isIPv6 {
		return netip.IPv6Unspecified().String()
	}
	return netip.IPv4Unspecified().String()
}

func labelPairs(labels map[string]string) ([]string, error) {
	var pairs []string
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !KubeletLabel(key) {
			continue
		}
		if problems := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(labels[key])); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("label %q: %s", key+"="+labels[key], strings.Join(problems, "; ")))
		}
		pairs = append(pairs, key+"="+labels[key])
	}
	return pairs, errors.Join(errs...)
}

// registrationTaints are the taints that a Node is registered with: the machine's, and those that
// it loses when it is fit for pods.
func registrationTaints(m *clusterv1alpha1.Machine, c Config) ([]corev1.Taint, error) {
	all := slices.Clone(c.StartupTaints)
	for _, t := range m.Spec.Taints {
		all = append(all, t.NodeTaint())
	}
	var errs []error
	for _, t := range all {
		problems := slices.Concat(validation.IsQualifiedName(t.Key), validation.IsValidLabelValue(t.Value))
		switch t.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			problems = append(problems, "the effect must be NoSchedule, PreferNoSchedule or NoExecute")
		}
		if len(problems) > 0 {
			errs = append(errs, fmt.Errorf("taint %q: %s", t.ToString(), strings.Join(problems, "; ")))
		}
	}
	slices.SortStableFunc(all, func(a, b corev1.Taint) int {
		return strings.Compare(a.Key+":"+string(a.Effect), b.Key+":"+string(b.Effect))
	})
	// The kubelet takes each key and effect once.
	all = slices.CompactFunc(all, func(a, b corev1.Taint) bool { return a.Key == b.Key && a.Effect == b.Effect })
	return all, errors.Join(errs...)
}
