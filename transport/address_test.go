package transport

import (
	"strings"
	"testing"
)

// TestParse: an address is understood, or told what it should be.
func TestParse(t *testing.T) {
	t.Setenv("GIVEN", "x")
	sum := strings.Repeat("ab", 32)
	for address, says := range map[string]string{
		"unix:///run/x.sock":                           "",
		"unix://x.sock":                                "unix:///absolute/path",
		"unix:/x.sock":                                 "unix:///absolute/path",
		"/x.sock":                                      "unix:///absolute/path",
		"unix:///" + strings.Repeat("x", 200):          "shorter",
		"tcp://host:9443":                              "plaintext TCP is refused",
		"127.0.0.1:9443":                               "plaintext TCP is refused",
		"dns:///host:9443":                             "plaintext TCP is refused",
		"dns:///host:9443?tls=run":                     "absolute",
		"dns:///host?tls=/run":                         "host:port",
		"dns:///:9443?tls=/run":                        "host:port",
		"dns:///host:9443?tls=/run":                    "",
		"dns:///[::1]:9443?tls=/run":                   "",
		"dns:///host:9443?tls=/run&identity=other":     "",
		"dns:///host:9443?tls=/run&identity=spiffe://": "SPIFFE",
		"dns:///host:9443?tls=/run&identity=spiffe://trust.example/driver": "",
		"dns:///host:9443?tls=/run&insecure=true":                          `"insecure" is unknown`,
		"exec:///opt/driver": "",
		"exec:///opt/driver?arg=--a&arg=--b&env=GIVEN&sha256=" + sum: "",
		"exec://opt/driver":             "exec:///absolute/path",
		"exec:///opt/driver?env=ABSENT": `"ABSENT"`,
		"exec:///opt/driver?sha256=ab":  "SHA-256",
		"exec:///opt/driver?args=--a":   `"args" is unknown`,
		"exec:///opt/driver?arg=%zz":    "cannot be read",
	} {
		t.Run(address, func(t *testing.T) {
			_, err := Parse(address, Options{})
			if (err == nil) != (says == "") || err != nil && (!strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), address)) {
				t.Errorf("error %v, want one that says %q and names the address", err, says)
			}
		})
	}
}
