package conformance

import (
	"strings"
	"testing"
)

func TestCertificatesAreReplacedOnlyWhereThatIsWanted(t *testing.T) {
	const onTCP = "dns:///driver.example:9443?tls=/core"
	for name, tc := range map[string]struct {
		config  Config
		outcome Outcome
		says    string
	}{
		"a unix socket":         {Config{Endpoint: "unix:///run/driver.sock", DriverCertificates: t.TempDir()}, NotApplicable, "not on TCP"},
		"a driver of core's":    {Config{Endpoint: "exec:///driver", DriverCertificates: t.TempDir()}, NotApplicable, "not on TCP"},
		"no folder":             {Config{Endpoint: onTCP}, NotRun, "driverCertificates"},
		"a folder with nothing": {Config{Endpoint: onTCP, DriverCertificates: t.TempDir()}, NotRun, "driverCertificates: "},
	} {
		for _, check := range accessChecks() {
			if check.ID != "access/new-certificate" && check.ID != "access/replaced-ca" {
				continue
			}
			r := newTrial(&session{target: &target{}, config: tc.config}).result(t.Context(), check)
			if r.Outcome != tc.outcome || !strings.Contains(r.Reason, tc.says) {
				t.Errorf("%s: %s is %s (%s) %v, want %s with %q", check.ID, name, r.Outcome, r.Reason, r.Breaches, tc.outcome, tc.says)
			}
		}
	}
}
