package mtls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// The files of a folder, named as in a Secret of type kubernetes.io/tls that cert-manager writes.
const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
	caFile   = "ca.crt"
	// Files names them for people.
	Files = certFile + ", " + keyFile + " and " + caFile
)

// CertificateFile is where a folder holds the certificate.
func CertificateFile(folder string) string {
	return filepath.Join(folder, certFile)
}

// Identity is who the other side has to be: a DNS name, an IP address or a SPIFFE id, which stands
// in its certificate.
type Identity string

// ParseIdentity reads an identity; an error says what to write.
func ParseIdentity(text string) (Identity, error) {
	if !strings.Contains(text, "://") {
		if text == "" || strings.ContainsAny(text, "/:* ") && net.ParseIP(text) == nil {
			return "", fmt.Errorf("%q is neither a DNS name nor spiffe://trust-domain/path", text)
		}
		return Identity(text), nil
	}
	id, err := url.Parse(text)
	if err != nil || id.Scheme != "spiffe" || id.Host == "" || id.Path == "" || id.RawQuery != "" || id.Fragment != "" {
		return "", fmt.Errorf("%q is not a SPIFFE id: write spiffe://trust-domain/path", text)
	}
	return Identity(text), nil
}

// verify says whether a certificate is that of the identity, issued by one of roots.
func (id Identity) verify(state tls.ConnectionState, roots *x509.CertPool, usage x509.ExtKeyUsage) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the other side has shown no certificate")
	}
	leaf, between := state.PeerCertificates[0], x509.NewCertPool()
	for _, one := range state.PeerCertificates[1:] {
		between.AddCert(one)
	}
	options := x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{usage}}
	var invalid x509.CertificateInvalidError
	switch _, err := leaf.Verify(options); {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		// Its own words hold the time of day, and would differ from one attempt to the next.
		return fmt.Errorf("the certificate of %s is valid from %s to %s only", invalid.Cert.Subject,
			invalid.Cert.NotBefore.Format(time.RFC3339), invalid.Cert.NotAfter.Format(time.RFC3339))
	case err != nil:
		return err
	}
	if !strings.HasPrefix(string(id), "spiffe://") {
		return leaf.VerifyHostname(string(id))
	}
	for _, uri := range leaf.URIs {
		if uri.String() == string(id) {
			return nil
		}
	}
	return fmt.Errorf("the certificate is valid for the URIs %v, not for %s", leaf.URIs, id)
}

// material is what a folder holds.
type material struct {
	certificate tls.Certificate
	roots       *x509.CertPool
}

// read reads a folder.
func read(folder string) (material, error) {
	certificate, err := tls.LoadX509KeyPair(CertificateFile(folder), filepath.Join(folder, keyFile))
	if err != nil {
		return material{}, fmt.Errorf("read the certificate: %w", err)
	}
	raw, err := os.ReadFile(filepath.Join(folder, caFile))
	if err != nil {
		return material{}, fmt.Errorf("read the CA: %w", err)
	}
	m := material{certificate: certificate, roots: x509.NewCertPool()}
	if !m.roots.AppendCertsFromPEM(raw) {
		return material{}, fmt.Errorf("%s holds no certificate", filepath.Join(folder, caFile))
	}
	return m, nil
}

// config is what both sides have in common. Whom it talks to is judged by peer alone, so that names
// and SPIFFE ids go one way.
func (m material) config(peer Identity, usage x509.ExtKeyUsage) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		Certificates:       []tls.Certificate{m.certificate},
		ClientAuth:         tls.RequireAnyClientCert,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection does more, for names and SPIFFE ids alike
		VerifyConnection: func(state tls.ConnectionState) error {
			return peer.verify(state, m.roots, usage)
		},
	}
}

// Client returns the configuration of one connection, from what the folder holds now. The server
// has to be peer.
func Client(folder string, peer Identity) (*tls.Config, error) {
	m, err := read(folder)
	if err != nil {
		return nil, err
	}
	return m.config(peer, x509.ExtKeyUsageServerAuth), nil
}

// Server returns the configuration of a server. The folder is read again when its files have
// changed; while it cannot be read, as in the middle of a change, what it held last counts. Clients
// have to be peer.
func Server(folder string, peer Identity) (*tls.Config, error) {
	f := &files{folder: folder}
	first, err := f.read()
	if err != nil {
		return nil, err
	}
	config := first.config(peer, x509.ExtKeyUsageClientAuth)
	config.NextProtos = []string{"h2"}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now, err := f.read()
		if err != nil {
			return nil, err
		}
		current := now.config(peer, x509.ExtKeyUsageClientAuth)
		current.NextProtos = []string{"h2"}
		return current, nil
	}
	return config, nil
}

// files are those of a folder, and what they held last. Whoever has not shown a certificate yet can
// ask for them, so they are read only when they have changed. It is safe for concurrent use.
type files struct {
	folder string
	last   atomic.Pointer[version]
}

// version is what the files held, and by what a change is told.
type version struct {
	material
	stamp string
}

// read returns what the files hold, or held last where they cannot be read.
func (f *files) read() (material, error) {
	last, stamp := f.last.Load(), stampOf(f.folder)
	if last != nil && last.stamp == stamp {
		return last.material, nil
	}
	now, err := read(f.folder)
	if err == nil {
		f.last.Store(&version{material: now, stamp: stamp})
		return now, nil
	}
	if last != nil {
		return last.material, nil
	}
	return material{}, err
}

// stampOf changes when a file of the folder does. A file that is not there has none.
func stampOf(folder string) string {
	var stamp strings.Builder
	for _, name := range []string{certFile, keyFile, caFile} {
		if info, err := os.Stat(filepath.Join(folder, name)); err == nil {
			fmt.Fprintf(&stamp, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return stamp.String()
}
