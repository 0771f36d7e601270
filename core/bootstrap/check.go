package bootstrap

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"
)

// What values may look like that are written where a character too many would be read as something
// else.
var (
	hostPattern    = regexp.MustCompile(`^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?(:[0-9]{1,5})?$`)
	imagePattern   = regexp.MustCompile(`^[a-z0-9][-a-zA-Z0-9._/:]*(@sha256:[0-9a-f]{64})?$`)
	digestPattern  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	packagePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?$`)
	noProxyPattern = regexp.MustCompile(`^[-a-zA-Z0-9.:/*\[\]]+$`)
)

// checkConfig checks all that is written down as it is. An error names the field of
// Cluster.spec.bootstrap.
func checkConfig(c Config) error {
	var errs []error
	if _, err := parseURL(c.Server, "https"); err != nil {
		errs = append(errs, fmt.Errorf("the API server: %w", err))
	} else if u, _ := url.Parse(c.Server); strings.Trim(u.Path, "/") != "" || u.User != nil {
		errs = append(errs, fmt.Errorf("the API server %s: must have neither path nor user", u.Redacted()))
	}
	if len(bytes.TrimSpace(c.CABundle)) == 0 {
		errs = append(errs, errors.New("caBundle: is required"))
	}
	for i, address := range c.ClusterDNS {
		if _, err := netip.ParseAddr(address); err != nil {
			errs = append(errs, fmt.Errorf("clusterDNS[%d]: %q is no IP address", i, address))
		}
	}
	if len(c.ClusterDNS) == 0 {
		errs = append(errs, errors.New("clusterDNS: is required"))
	}
	if c.ClusterDomain != "" && len(validation.IsDNS1123Subdomain(c.ClusterDomain)) > 0 {
		errs = append(errs, fmt.Errorf("clusterNetwork.serviceDomain: %q is no domain", c.ClusterDomain))
	}
	return errors.Join(append(errs, checkMore(c))...)
}

// checkMore checks what only some clusters set.
func checkMore(c Config) error {
	var errs []error
	if c.HTTPProxy != "" {
		if _, err := parseURL(c.HTTPProxy, "http", "https"); err != nil {
			errs = append(errs, fmt.Errorf("httpProxy: %w", err))
		}
	}
	for _, list := range []struct {
		name    string
		values  []string
		pattern *regexp.Regexp
	}{
		{"noProxy", c.NoProxy, noProxyPattern},
		{"clusterNetwork.pods", c.PodCIDRs, noProxyPattern},
		{"clusterNetwork.services", c.ServiceCIDRs, noProxyPattern},
		{"ntpServers", c.NTPServers, hostOrAddressPattern},
		{"packages", c.Packages, packagePattern},
	} {
		for i, value := range list.values {
			if !list.pattern.MatchString(value) {
				errs = append(errs, fmt.Errorf("%s[%d]: %q is not allowed", list.name, i, value))
			}
		}
	}
	return errors.Join(errs...)
}

// hostOrAddressPattern is for a host's name or address, IPv6 included.
var hostOrAddressPattern = regexp.MustCompile(`^[a-zA-Z0-9:]([-a-zA-Z0-9.:]*[a-zA-Z0-9:])?$`)

// parseURL reads a URL that has one of the schemes and a host, and that needs no quoting anywhere:
// it is written into files of several formats. The error leaves out its password.
func parseURL(text string, schemes ...string) (*url.URL, error) {
	hint := fmt.Errorf("must be a URL, such as %s://host:port", schemes[len(schemes)-1])
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || !slices.Contains(schemes, u.Scheme) {
		return nil, hint
	}
	unfit := func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsPrint(r) || strings.ContainsRune(" \"'`\\$<>{}|^;", r)
	}
	if strings.ContainsFunc(text, unfit) {
		return nil, fmt.Errorf("%w, other characters written as %%XX", hint)
	}
	return u, nil
}

// parseBundle reads a bundle of certificates.
func parseBundle(bundle []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for rest := bytes.TrimSpace(bundle); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return nil, errors.New("must hold certificates as PEM and nothing else")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(certificates), err)
		}
		certificates = append(certificates, certificate)
	}
	return certificates, nil
}

// notBefore is when the last of the bundle's certificates begins to be valid.
func notBefore(bundle []byte) (time.Time, error) {
	certificates, err := parseBundle(bundle)
	var latest time.Time
	for _, certificate := range certificates {
		if certificate.NotBefore.After(latest) {
			latest = certificate.NotBefore
		}
	}
	return latest, err
}

// decodeStrictly reads JSON as the kubelet does: unknown fields, fields given twice and names of
// other case are an error.
func decodeStrictly(data []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(data, into)
	return errors.Join(append(strict, err)...)
}
