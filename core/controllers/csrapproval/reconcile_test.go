package csrapproval

import (
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/millwright-dev/millwright/core/bootstrap/csr"
)

// TestRecheckAfter: kubelets that wait send a request each quarter of an hour, and those before it
// stay for a day. They are not all looked at each minute.
func TestRecheckAfter(t *testing.T) {
	read := func(user, signer string) csr.Request {
		return csr.Read(&certificatesv1.CertificateSigningRequest{
			Spec: certificatesv1.CertificateSigningRequestSpec{Username: user, SignerName: signer},
		})
	}
	serving, first := read("system:node:a", serverSigner), read("system:bootstrap:aaaaaa", clientSigner)
	for name, c := range map[string]struct {
		request   csr.Request
		age, want time.Duration
	}{
		"a new one":                    {serving, 0, time.Second},
		"one of some time":             {serving, 20 * time.Second, 10 * time.Second},
		"one of several minutes":       {serving, 14 * time.Minute, time.Minute},
		"one that its kubelet gave up": {serving, 15 * time.Minute, 0},
		"a first one":                  {first, 20 * time.Minute, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := recheckAfter(c.request, c.age); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
