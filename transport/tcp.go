package transport

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/millwright-dev/millwright/transport/mtls"
)

// peerTimeout is after how long a peer that acknowledges nothing is given up.
const peerTimeout = 20 * time.Second

// tcp is a driver on a host of its own.
type tcp struct {
	address string
	folder  string
	peer    mtls.Identity
}

// parseTCP reads /HOST:PORT?tls=FOLDER[&identity=ID].
func parseTCP(rest string, _ Options) (Transport, error) {
	address, query, err := splitQuery(rest, "tls", "identity")
	if err != nil {
		return nil, err
	}
	address = strings.TrimPrefix(address, "/")
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" {
		return nil, fmt.Errorf("write dns:///host:port?tls=/folder, not the host and port %q", address)
	}
	t := tcp{address: address, folder: query.Get("tls")}
	if !filepath.IsAbs(t.folder) {
		return nil, fmt.Errorf("plaintext TCP is refused because requests hold credentials: add ?tls=/absolute/folder, with %s in it", mtls.Files)
	}
	identity := query.Get("identity")
	if identity == "" {
		identity = host
	}
	if t.peer, err = mtls.ParseIdentity(identity); err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	return t, nil
}

// CertificateFile is where the certificate lies that the caller of a driver by TCP shows; empty for
// an address of another kind, or one that Parse refuses.
func CertificateFile(address string) string {
	parsed, err := Parse(address, Options{})
	if t, isTCP := parsed.(tcp); err == nil && isTCP {
		return mtls.CertificateFile(t.folder)
	}
	return ""
}

// splitQuery takes the query off an address; it may hold what known names.
func splitQuery(rest string, known ...string) (string, url.Values, error) {
	before, after, _ := strings.Cut(rest, "?")
	query, err := url.ParseQuery(after)
	if err != nil {
		return "", nil, fmt.Errorf("what follows ? cannot be read: %w", err)
	}
	for name := range query {
		if !slices.Contains(known, name) {
			return "", nil, fmt.Errorf("%q is unknown after ?: there are %s", name, strings.Join(known, ", "))
		}
	}
	return before, query, nil
}

// Open implements Transport. Certificates and CA are read anew for each connection.
func (t tcp) Open(ctx context.Context) (*Wire, error) {
	config, err := mtls.Client(t.folder, t.peer)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: peerTimeout / 2, Interval: peerTimeout / 4, Count: 2},
		Control:         giveUpAfter(peerTimeout),
	}
	conn, err := dial(ctx, d, "tcp", t.address)
	if err != nil {
		return nil, err
	}
	return &Wire{Conn: conn, Credentials: credentials.NewTLS(config), Authority: t.address}, nil
}
