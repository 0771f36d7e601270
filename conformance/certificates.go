package conformance

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// The files of a folder with a certificate, its key, and the CAs that its owner trusts.
const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
	caFile   = "ca.crt"
)

func load(folder string) (tls.Certificate, error) {
	return tls.LoadX509KeyPair(filepath.Join(folder, certFile), filepath.Join(folder, keyFile))
}

// authority issues certificates. They are valid for an hour.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes a CA that nobody trusts yet.
func newAuthority() (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "driver-conformance"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(raw)
	return authority{cert: cert, key: key}, err
}

// issue makes a certificate for whom another one is, of a key of its own.
func (a authority) issue(like *x509.Certificate) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: like.Subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		DNSNames: like.DNSNames, IPAddresses: like.IPAddresses, URIs: like.URIs,
	}
	raw, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, nil
}

// forged is like the certificate in a folder, but for its key and that of the CA which seems to
// have issued it.
func forged(folder string) (tls.Certificate, error) {
	good, err := load(folder)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	issuer := &x509.Certificate{RawSubject: good.Leaf.RawIssuer, SubjectKeyId: good.Leaf.AuthorityKeyId}
	return authority{cert: issuer, key: key}.issue(good.Leaf)
}

// asFiles returns what a folder with a certificate holds, but for the CAs.
func asFiles(c tls.Certificate) (map[string][]byte, error) {
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		certFile: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}),
		keyFile:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}, nil
}

// asFile returns the file that has others trust the CA.
func (a authority) asFile() map[string][]byte {
	return map[string][]byte{caFile: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})}
}

// writeFiles writes files into a folder. Those that are there keep their modes.
func writeFiles(folder string, files map[string][]byte) error {
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// readFiles reads the files of a folder that others has.
func readFiles(folder string, others map[string][]byte) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name := range others {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, fmt.Errorf("read what is to be replaced: %w", err)
		}
		files[name] = content
	}
	return files, nil
}
