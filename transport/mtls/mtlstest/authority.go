// Package mtlstest issues certificates to tests and benchmarks.
package mtlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Authority issues certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes a CA that is valid for an hour.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the CA's key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the CA: %w", err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, fmt.Errorf("make the CA: %w", err)
	}
	return &Authority{cert: cert, key: key}, nil
}

// Issue writes tls.crt, tls.key and ca.crt into a folder. The certificate is for an identity, a DNS
// name or a SPIFFE id, and is valid for so long from now on. The CA that its holder trusts is
// in ca.crt.
func (a *Authority) Issue(folder, identity string, valid time.Duration, trusts *Authority) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(valid),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if id, err := url.Parse(identity); err == nil && id.Scheme != "" {
		template.URIs = []*url.URL{id}
	} else {
		template.DNSNames = []string{identity}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("issue a certificate: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode a key: %w", err)
	}
	for name, block := range map[string]pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: raw}, "tls.key": {Type: "EC PRIVATE KEY", Bytes: der},
		"ca.crt": {Type: "CERTIFICATE", Bytes: trusts.cert.Raw},
	} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(&block), 0o600); err != nil {
			return err
		}
	}
	return nil
}
