package localcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// keyPair names the PEM files of a certificate and its key.
type keyPair struct{ cert, key string }

// authority signs certificates and keeps all of its files in one folder. It is for one run: nothing
// is ever renewed.
type authority struct {
	dir  string
	pair keyPair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// certificateLife is far more than a local cluster's life.
const certificateLife = 365 * 24 * time.Hour

// newAuthority makes a certificate authority in dir, which must not exist.
func newAuthority(dir, name string) (*authority, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create folder for certificates: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	template := newTemplate(pkix.Name{CommonName: name})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse certificate of %s: %w", name, err)
	}
	a := &authority{dir: dir, cert: cert, key: key}
	a.pair, err = a.write("ca", der, key)
	return a, err
}

// serving issues a certificate for servers on this machine, which is also good for a client. Names
// are further DNS names and IP addresses.
func (a *authority) serving(name string, names ...string) (keyPair, error) {
	template := newTemplate(pkix.Name{CommonName: name})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.ParseIP(loopback), net.ParseIP(serviceIP)}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, n)
	}
	return a.issue(name, template)
}

// client issues a certificate for a user in groups.
func (a *authority) client(file, user string, groups ...string) (keyPair, error) {
	template := newTemplate(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(file, template)
}

func (a *authority) issue(file string, template *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generate key: %w", err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("sign certificate of %s: %w", file, err)
	}
	return a.write(file, der, key)
}

// write writes a certificate and its key for the owner's eyes only.
func (a *authority) write(file string, der []byte, key *ecdsa.PrivateKey) (keyPair, error) {
	pair := keyPair{cert: filepath.Join(a.dir, file+".crt"), key: filepath.Join(a.dir, file+".key")}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("encode key of %s: %w", file, err)
	}
	if err := writePEM(pair.cert, "CERTIFICATE", der); err != nil {
		return keyPair{}, err
	}
	return pair, writePEM(pair.key, "PRIVATE KEY", keyDER)
}

// writeSigningKey makes the key pair that ServiceAccount tokens are signed and checked with; cert
// is its public key.
func writeSigningKey(dir string) (keyPair, error) {
	pair := keyPair{cert: filepath.Join(dir, "service-accounts.pub"), key: filepath.Join(dir, "service-accounts.key")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generate key: %w", err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("encode key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return keyPair{}, fmt.Errorf("encode public key: %w", err)
	}
	if err := writePEM(pair.key, "EC PRIVATE KEY", private); err != nil {
		return keyPair{}, err
	}
	return pair, writePEM(pair.cert, "PUBLIC KEY", public)
}

func writePEM(path, kind string, der []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", kind, err)
	}
	return nil
}

// newTemplate starts an hour ago, for clocks that are behind.
func newTemplate(name pkix.Name) *x509.Certificate {
	now := time.Now()
	serial := make([]byte, 16)
	_, _ = rand.Read(serial) // Never fails: it ends the program instead.
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial),
		Subject:      name,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certificateLife),
	}
}
