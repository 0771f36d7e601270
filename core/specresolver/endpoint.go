package specresolver

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// EndpointPattern is an address, or a pattern of addresses, that specs may name.
type EndpointPattern struct {
	// scheme is https or http. host is in lower case, and may hold wildcards. port is empty for
	// any.
	scheme, host, port string
}

// ParseEndpointPattern reads [http://|https://]HOST[:PORT], in which HOST may hold wildcards as in
// *.example.com. Without a scheme it stands for https, without a port for each. An error says
// what to write instead.
func ParseEndpointPattern(text string) (EndpointPattern, error) {
	wrong := fmt.Errorf("%q: write a host, or a pattern of hosts such as *.example.com; "+
		"https:// or http:// may precede it, and a port may follow", text)
	p := EndpointPattern{scheme: "https"}
	rest := strings.ToLower(text)
	if scheme, after, has := strings.Cut(rest, "://"); has {
		if scheme != "https" && scheme != "http" {
			return p, wrong
		}
		p.scheme, rest = scheme, after
	}
	if flaw := notPrintable(rest); flaw != "" {
		return p, fmt.Errorf("%q: %s", text, flaw)
	}
	if strings.ContainsAny(rest, "/@\\%#") {
		return p, wrong
	}
	if ip, err := netip.ParseAddr(rest); err == nil && ip.Zone() == "" {
		p.host = ip.String()
		return p, nil
	}
	host, port, fine := splitPort(rest)
	host = strings.TrimSuffix(host, ".")
	if _, err := path.Match(host, ""); err != nil || host == "" || !fine {
		return p, wrong
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.WithZone("").String()
	}
	p.host, p.port = host, port
	return p, nil
}

// String is the pattern as it is to be written.
func (p EndpointPattern) String() string {
	host := p.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if p.port != "" {
		host += ":" + p.port
	}
	return p.scheme + "://" + host
}

// matches says whether the pattern stands for the host and port of an address.
func (p EndpointPattern) matches(e endpoint) bool {
	matches, err := path.Match(p.host, e.host)
	return err == nil && matches && (p.port == "" || p.port == e.port)
}

// endpoint is what counts of an address. Its port is never empty.
type endpoint struct{ scheme, host, port string }

// parseEndpoint reads an address, or says what is wrong with it. It takes only what no reader of
// URLs could read in another way: the driver, in whatever language, must not go to another host
// than the one that was checked.
func parseEndpoint(address string) (e endpoint, flaw string) {
	if flaw := notPrintable(address); flaw != "" {
		return e, flaw
	}
	scheme, rest, _ := strings.Cut(address, "://")
	e.scheme = strings.ToLower(scheme)
	if e.scheme != "https" && e.scheme != "http" {
		return e, "must be an absolute URL that begins with https:// or http://"
	}
	if strings.ContainsRune(address, '\\') {
		return e, `must not hold a backslash`
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	if strings.ContainsRune(authority, '@') {
		return e, "must not name a user or a password: give them in fields of their own"
	}
	host, port, fine := splitPort(strings.ToLower(authority))
	if !fine {
		return e, "must name a port as a number from 1 to 65535, or none"
	}
	if e.host = canonicalHost(host, strings.HasPrefix(authority, "[")); e.host == "" {
		return e, "must name a host: a DNS name, an IPv4 address, or an IPv6 address in brackets"
	}
	parsed, err := url.Parse(address)
	if err != nil || !strings.EqualFold(parsed.Host, authority) {
		return e, "is not a URL"
	}
	if e.port = port; port == "" {
		e.port = map[string]string{"https": "443", "http": "80"}[e.scheme]
	}
	return e, ""
}

// notPrintable says what is wrong with a text that is not of printable ASCII alone. Programs
// disagree about what a host in other letters is in ASCII.
func notPrintable(text string) string {
	for _, c := range []byte(text) {
		if c > 0x7e {
			return "must be in ASCII: write a host with other letters in its ASCII form (xn--…)"
		}
		if c <= ' ' {
			return "must not hold blanks"
		}
	}
	return ""
}

// splitPort cuts HOST:PORT, HOST, [IPV6]:PORT and [IPV6]. fine is false where the port is no number
// that a port can have.
func splitPort(text string) (host, port string, fine bool) {
	if inner, after, has := strings.Cut(text, "]"); has && strings.HasPrefix(inner, "[") && strings.Contains(inner, ":") {
		host, text = inner[1:], after
		if text == "" {
			return host, "", true
		}
		var before string
		if before, port, has = strings.Cut(text, ":"); before != "" || !has {
			return "", "", false
		}
	} else {
		if host, port, has = strings.Cut(text, ":"); !has {
			return host, "", true
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return host, port, err == nil && n > 0 && strconv.FormatUint(n, 10) == port
}

// maxHost is how long the name of a host can be.
const maxHost = 253

// canonicalHost is the one form of a host in lower case; empty for what is none.
func canonicalHost(host string, bracketed bool) string {
	ip, err := netip.ParseAddr(host)
	if bracketed {
		if err != nil || !ip.Is6() || ip.Zone() != "" {
			return ""
		}
		return ip.String()
	}
	if err == nil && ip.Is4() {
		return ip.String()
	}
	host = strings.TrimSuffix(host, ".")
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return ""
		}
	}
	// Some programs read 127.1 and 0x7f000001 as addresses.
	last := labels[len(labels)-1]
	if len(host) > maxHost || strings.HasPrefix(last, "0x") || strings.Trim(last, "0123456789") == "" {
		return ""
	}
	return host
}
