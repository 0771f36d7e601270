package bootstrap

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// metadataAddress is where clouds serve a machine's metadata; no proxy reaches that.
const metadataAddress = "169.254.169.254"

// systemFiles are what the machine itself is to know: the API server and how old its CA is at
// least, proxy, time servers, authorities, packages.
func systemFiles(m *clusterv1alpha1.Machine, c Config) ([]File, error) {
	begin, err := notBefore(c.CABundle)
	if err != nil {
		return nil, fmt.Errorf("caBundle: %w", err)
	}
	files := []File{
		{Path: "/etc/millwright/api-server", Content: c.Server + "\n"},
		{Path: "/etc/millwright/not-before", Content: fmt.Sprintf("%d\n", begin.Unix())},
	}
	if content := m.Spec.ProviderSpec.Value.OverwriteCloudConfig; content != "" {
		files = append(files, File{Path: "/etc/kubernetes/cloud-config", Content: content, Mode: secretMode})
	}
	flatcar := m.Spec.ProviderSpec.Value.OperatingSystem == clusterv1alpha1.OperatingSystemFlatcar
	files = append(files, proxyFiles(c, flatcar)...)
	if len(c.NTPServers) > 0 {
		files = append(files, File{
			Path: "/etc/systemd/timesyncd.conf.d/millwright.conf", Content: "[Time]\nNTP=" + strings.Join(c.NTPServers, " ") + "\n",
		})
		if !flatcar {
			lines := "server " + strings.Join(c.NTPServers, " iburst\nserver ") + " iburst\n"
			files = append(files, File{Path: "/etc/chrony/sources.d/millwright.sources", Content: lines})
		}
	}
	authorities, err := hostAuthorities(c.HostCABundle, flatcar)
	if err != nil {
		return nil, err
	}
	files = append(files, authorities...)
	packages := c.Packages
	if c.BlockMetadata && !flatcar {
		packages = append(slices.Clone(packages), "nftables")
	}
	if len(packages) > 0 {
		if flatcar {
			return nil, fmt.Errorf("packages: Flatcar has none; put what is needed into the image")
		}
		files = append(files, File{Path: "/etc/millwright/packages", Content: strings.Join(packages, "\n") + "\n"})
	}
	return files, nil
}

// proxyFiles tell services and apt of the proxy.
func proxyFiles(c Config, flatcar bool) []File {
	if c.HTTPProxy == "" {
		return nil
	}
	without := strings.Join(noProxy(c), ",")
	var lines strings.Builder
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		fmt.Fprintf(&lines, "%s=%q\n", name, c.HTTPProxy)
	}
	fmt.Fprintf(&lines, "NO_PROXY=%q\nno_proxy=%q\n", without, without)
	// An URL may hold a password.
	files := []File{{Path: "/etc/millwright/proxy.env", Content: lines.String(), Mode: secretMode}}
	if !flatcar {
		files = append(files, File{
			Path:    "/etc/apt/apt.conf.d/95-millwright-proxy",
			Content: fmt.Sprintf("Acquire::http::Proxy %q;\nAcquire::https::Proxy %q;\n", c.HTTPProxy, c.HTTPProxy),
			Mode:    secretMode,
		})
	}
	return files
}

// noProxy is what is reached directly: what the operator says, and the cluster itself.
func noProxy(c Config) []string {
	all := slices.Clone(c.NoProxy)
	if server, err := url.Parse(c.Server); err == nil {
		all = append(all, server.Hostname())
	}
	all = append(all, c.PodCIDRs...)
	all = append(all, c.ServiceCIDRs...)
	all = append(all, "."+clusterDomain(c), ".svc", "localhost", "127.0.0.1", metadataAddress)
	slices.Sort(all)
	return slices.Compact(all)
}

// hostAuthorities are files of one certificate each: update-ca-certificates links only the first.
func hostAuthorities(bundle []byte, flatcar bool) ([]File, error) {
	name := "/usr/local/share/ca-certificates/millwright-%d.crt"
	if flatcar {
		name = "/etc/ssl/certs/millwright-%d.pem"
	}
	certificates, err := parseBundle(bundle)
	if err != nil {
		return nil, fmt.Errorf("hostCABundle: %w", err)
	}
	var files []File
	for i, certificate := range certificates {
		files = append(files, File{Path: fmt.Sprintf(name, i), Content: encodeBundle([]*x509.Certificate{certificate})})
	}
	return files, nil
}
