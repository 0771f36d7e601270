package localcluster

import (
	"fmt"
	"os"
)

// ServingCertificate makes a certificate for a server on this machine: tls.crt and tls.key in dir,
// which must not exist. It returns the certificate of the authority that vouches for it, as PEM.
func ServingCertificate(dir string) (authority []byte, err error) {
	ca, err := newAuthority(dir, "local webhooks")
	if err != nil {
		return nil, err
	}
	if _, err := ca.serving("tls"); err != nil {
		return nil, err
	}
	authority, err = os.ReadFile(ca.pair.cert)
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	return authority, nil
}
