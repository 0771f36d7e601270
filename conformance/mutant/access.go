package mutant

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

func ofAccess() []Mutant {
	return []Mutant{
		{Name: "open-to-all", Check: "access/socket-mode", Socket: 0o666, mutate: unchanged},
		{Name: "taking-plaintext-too", Check: "access/plaintext", TCP: inTheClear, mutate: unchanged},
		{Name: "taking-old-tls-too", Check: "access/old-tls", TCP: takingOldTLS, mutate: unchanged},
		{Name: "asking-for-no-certificate", Check: "access/no-certificate", TCP: asking(tls.NoClientCert, 0), mutate: unchanged},
		{Name: "taking-any-certificate", Check: "access/foreign-certificate", TCP: asking(tls.RequireAnyClientCert, 0), mutate: unchanged},
		{Name: "behind-the-times", Check: "access/expired-certificate", TCP: asking(tls.RequireAndVerifyClientCert, 30*time.Minute), mutate: unchanged},
		{Name: "keeping-its-certificate", Check: "access/new-certificate", TCP: asking(tls.RequireAndVerifyClientCert, 0), mutate: unchanged},
		{Name: "keeping-its-ca", Check: "access/replaced-ca", TCP: asking(tls.RequireAndVerifyClientCert, 0), mutate: unchanged},
		{Name: "taking-one-connection", Check: "access/connections", Accept: firstAlone, mutate: unchanged},
		{Name: "adding-cas", Check: "access/replaced-ca", TCP: addingCAs, mutate: unchanged},
	}
}

// firstAlone accepts the first connection, and closes all others.
func firstAlone(listener net.Listener) net.Listener { return &takingOne{Listener: listener} }

type takingOne struct {
	net.Listener
	taken bool
}

func (l *takingOne) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || !l.taken {
			l.taken = true
			return conn, err
		}
		_ = conn.Close()
	}
}

// asking asks clients for what want says, by a clock that is behind. It reads its files once.
func asking(want tls.ClientAuthType, behind time.Duration) func(folder string) (credentials.TransportCredentials, error) {
	return func(folder string) (credentials.TransportCredentials, error) {
		config, err := secured(folder, nil)
		if err != nil {
			return nil, err
		}
		config.ClientAuth, config.Time = want, func() time.Time { return time.Now().Add(-behind) }
		return credentials.NewTLS(config), nil
	}
}

// takingOldTLS also speaks TLS 1.2.
func takingOldTLS(folder string) (credentials.TransportCredentials, error) {
	config, err := secured(folder, nil)
	if err != nil {
		return nil, err
	}
	config.MinVersion = tls.VersionTLS12
	return credentials.NewTLS(config), nil
}

// addingCAs reads its files for each connection, and trusts the first CA for ever.
func addingCAs(folder string) (credentials.TransportCredentials, error) {
	first, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the CA: %w", err)
	}
	config, err := secured(folder, nil)
	if err != nil {
		return nil, err
	}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return secured(folder, first) }
	return credentials.NewTLS(config), nil
}

// secured reads the files of a folder. It trusts more CAs beside those in them.
func secured(folder string, more []byte) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	ca, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the CA: %w", err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca)
	trusted.AppendCertsFromPEM(more)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted,
		NextProtos: []string{"h2"},
	}, nil
}

// inTheClear lets the client choose whether to speak TLS.
func inTheClear(folder string) (credentials.TransportCredentials, error) {
	secured, err := asking(tls.RequireAndVerifyClientCert, 0)(folder)
	return eitherWay{secured}, err
}

type eitherWay struct {
	credentials.TransportCredentials
}

// handshakeRecord is the first byte that a client of TLS sends.
const handshakeRecord = 22

// ServerHandshake implements credentials.TransportCredentials.
func (e eitherWay) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); err != nil {
		return nil, nil, err
	}
	whole := begun{Conn: conn, reader: io.MultiReader(bytes.NewReader(first), conn)}
	if first[0] == handshakeRecord {
		return e.TransportCredentials.ServerHandshake(whole)
	}
	return insecure.NewCredentials().ServerHandshake(whole)
}

// begun is a connection of which the beginning was read.
type begun struct {
	net.Conn
	reader io.Reader
}

// Read implements net.Conn.
func (b begun) Read(to []byte) (int, error) { return b.reader.Read(to) }
