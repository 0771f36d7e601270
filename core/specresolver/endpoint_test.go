package specresolver

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
)

func TestParseEndpointPattern(t *testing.T) {
	for text, want := range map[string]string{
		"API.example.com": "https://api.example.com", "*.example.com": "https://*.example.com", "a.example.com.": "https://a.example.com",
		"https://a.example.com": "https://a.example.com", "http://a": "http://a", "a:5000": "https://a:5000", "10.0.0.1": "https://10.0.0.1",
		"2001:DB8::1": "https://[2001:db8::1]", "[2001:db8:0::1]:5000": "https://[2001:db8::1]:5000", "[2001:db8::1]": "https://[2001:db8::1]",
		"[ab].example.com": "https://[ab].example.com", "xn--bcher-kva.example": "https://xn--bcher-kva.example",
		"": "", "https://": "", "ftp://a": "", "https://a/v3": "", "[a": "", "a:0": "", "a:x": "", "a:65536": "", "a:": "", "u@a": "",
		"a b": "", "bücher.example": "", `a\b`: "", "fe80::1%eth0": "", "[::1]5000": "",
	} {
		got, err := ParseEndpointPattern(text)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q: %s, %v; want %q", text, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), strconv.Quote(text)) {
			t.Errorf("%q: the error does not name it: %v", text, err)
		}
	}
}

// What one program reads as an allowed host and another as somebody else's is refused.
func TestSAFE8_AddressesThatCanBeReadInTwoWaysAreRefused(t *testing.T) {
	for address, want := range map[string]string{
		"https://api.example.com":              "",
		"HTTPS://API.Example.com./v3?a=b#c":    "",
		"https://api.example.com:5000/v3":      "",
		"https://api.example.com:443":          "",
		"https://[2001:DB8:0::1]:5000":         "",
		"http://api.example.com":               "",
		"/v3":                                  "absolute",
		"api.example.com":                      "absolute",
		"//api.example.com":                    "absolute",
		"ftp://api.example.com":                "absolute",
		"file:///etc/passwd":                   "absolute",
		"https:api.example.com":                "absolute",
		"https:/api.example.com":               "absolute",
		"https://":                             "name a host",
		"https:///api.example.com":             "name a host",
		"https://?api.example.com":             "name a host",
		"https://api.example.com@evil.org":     "user or a password",
		"https://me:pw@api.example.com":        "user or a password",
		`https://evil.org\@api.example.com`:    "backslash",
		`https://evil.org\.example.com`:        "backslash",
		"https://evil.org%2f.example.com":      "name a host",
		"https://%61pi.example.com":            "name a host",
		"https://bücher.example.com":           "xn--",
		"https://evil.org。example.com":         "xn--",
		"https://evil.org .example.com":        "blanks",
		"https://evil.org\t.example.com":       "blanks",
		"https://api.example.com:":             "port",
		"https://api.example.com:0":            "port",
		"https://api.example.com:080":          "port",
		"https://api.example.com:99999":        "port",
		"https://api.example.com:443:443":      "port",
		"https://2001:db8::1":                  "port",
		"https://[fe80::1%25eth0]":             "name a host",
		"https://[10.0.0.1]":                   "name a host",
		"https://127.1":                        "name a host",
		"https://2130706433":                   "name a host",
		"https://0x7f.0x1":                     "name a host",
		"https://010.0.0.1":                    "name a host",
		"https://a..example.com":               "name a host",
		"https://.example.com":                 "name a host",
		"https://*.example.com":                "name a host",
		"https://" + strings.Repeat("a.", 140): "name a host",
	} {
		_, flaw := parseEndpoint(address)
		if (flaw == "") != (want == "") || !strings.Contains(flaw, want) {
			t.Errorf("%q: %q, want %q", address, flaw, want)
		}
	}
}

func TestAPI4_AllowedAddresses(t *testing.T) {
	for _, tc := range []struct {
		pattern, address string
		allowed          bool
	}{
		{"*.example.com", "https://api.example.com:5000", true},
		{"*.example.com", "https://example.com", false},
		{"*.example.com", "https://api.example.com.evil.org", false},
		{"*.example.com", "http://api.example.com", false},
		{"http://*.example.com", "http://api.example.com", true},
		{"http://*.example.com", "https://api.example.com", false},
		{"api.example.com:5000", "https://api.example.com:5000/v3", true},
		{"api.example.com:5000", "https://api.example.com", false},
		{"api.example.com:443", "https://API.example.com./v3", true},
		{"http://api.example.com:80", "http://api.example.com", true},
		{"2001:db8::1", "https://[2001:db8:0:0::1]:5000", true},
		{"xn--bcher-kva.example", "https://XN--bcher-kva.example", true},
	} {
		e, flaw := parseEndpoint(tc.address)
		if flaw != "" {
			t.Fatal(tc.address, flaw)
		}
		if flaw = (Rules{Endpoints: patterns(t, tc.pattern)}).flaw(e); (flaw == "") != tc.allowed {
			t.Errorf("%s, where %s is allowed: %q", tc.address, tc.pattern, flaw)
		}
	}
}

// FuzzEndpoint wants an address that passes to be one that Go's own reader takes for the same host.
func FuzzEndpoint(f *testing.F) {
	for _, seed := range []string{
		"https://api.example.com:5000/v3", "http://[2001:db8::1]:80", `https://evil.org\@api.example.com`, "https://127.1", "https://a@b", "/v3",
		"https://bücher.example", "https://xn--bcher-kva.example.", "https://api.example.com#@evil.org", "https://api.example.com?@evil.org",
	} {
		f.Add(seed, "*.example.com")
	}
	f.Fuzz(func(t *testing.T, address, pattern string) {
		allowed, err := ParseEndpointPattern(pattern)
		if err == nil {
			if again, err := ParseEndpointPattern(allowed.String()); err != nil || again != allowed {
				t.Errorf("%q is %q, which is %v, %v", pattern, allowed, again, err)
			}
		}
		e, flaw := parseEndpoint(address)
		if flaw != "" {
			return
		}
		parsed, err := url.Parse(address)
		if err != nil || !parsed.IsAbs() || parsed.User != nil || parsed.Opaque != "" {
			t.Fatalf("%q passes: %v", address, err)
		}
		host := strings.TrimSuffix(strings.ToLower(parsed.Hostname()), ".")
		if !strings.Contains(host, ":") && host != e.host || e.host == "" || parsed.Port() != "" && parsed.Port() != e.port {
			t.Errorf("%q is read as %v, and by Go as %q, port %q", address, e, host, parsed.Port())
		}
		if strings.Trim(e.host, "abcdefghijklmnopqrstuvwxyz0123456789-_.:") != "" || strings.ToLower(parsed.Scheme) != e.scheme {
			t.Errorf("%q is read as %v", address, e)
		}
	})
}
