package conformance

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/millwright-dev/millwright/proto/contract"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
	"github.com/millwright-dev/millwright/transport/mtls"
)

func accessChecks() []Check {
	return []Check{
		{
			ID: "access/socket-mode", Level: Must, Musts: []int{37}, run: socketMode,
			Rule: "A unix socket is open to its owner and group alone: mode 0660 or less.",
		},
		{
			ID: "access/plaintext", Level: Must, Musts: []int{38}, run: plaintext,
			Rule: "A driver on TCP refuses plaintext.",
		},
		{
			ID: "access/old-tls", Level: Must, Musts: []int{38}, run: oldTLS,
			Rule: "A driver on TCP speaks TLS 1.3, and refuses TLS 1.2.",
		},
		{
			ID: "access/no-certificate", Level: Must, Musts: []int{39}, run: noCertificate,
			Rule: "A driver on TCP refuses clients that show no certificate.",
		},
		{
			ID: "access/foreign-certificate", Level: Must, Musts: []int{39}, run: foreignCertificate,
			Rule: "A driver on TCP refuses certificates of a CA that it does not trust.",
		},
		{
			ID: "access/expired-certificate", Level: Must, Musts: []int{39}, run: expiredCertificate,
			Rule: "A driver on TCP refuses certificates that have expired.",
		},
		{
			ID: "access/new-certificate", Level: Should, run: newCertificate,
			Rule: "A driver on TCP whose certificate is replaced while it runs shows new connections the new one.",
		},
		{
			ID: "access/replaced-ca", Level: Should, run: replacedCA,
			Rule: "A driver on TCP whose CA is replaced while it runs takes new connections of the new one's clients, and refuses those of the old one's.",
		},
		{
			ID: "access/connections", Level: Should, run: connections,
			Rule: "A driver on a socket takes further connections beside the first, and goes on with that when they have ended.",
		},
	}
}

// connections makes some beside that of the run, one after the other.
func connections(ctx context.Context, t *trial) {
	if strings.HasPrefix(t.config.Endpoint, "exec:") {
		t.notApplicable("only the harness that has started the driver is connected with it")
	}
	for range 3 {
		other := *t.target
		other.driver = nil
		reaching, stop := context.WithTimeout(ctx, refusalLimit)
		err := other.reach(reaching)
		stop()
		if err != nil {
			t.errorf("a connection beside another: %v", err)
			return
		}
		if _, err := other.handshake.GetPluginInfo(ctx, pluginInfoRequest()); err != nil {
			t.errorf("a call on a connection beside another: %v", err)
		}
		_ = other.driver.Close()
	}
	if _, err := t.handshake.GetPluginInfo(ctx, pluginInfoRequest()); err != nil {
		t.errorf("a call on the first connection, after others have ended: %v", err)
	}
}

func socketMode(_ context.Context, t *trial) {
	path, unix := strings.CutPrefix(t.config.Endpoint, "unix://")
	if !unix {
		t.notApplicable("the driver is not on a unix socket")
	}
	info, err := os.Stat(path)
	if err != nil {
		t.fatalf("the socket: %v", err)
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		t.errorf("the socket %s has the mode %04o, which is open to others than its owner and group: make it 0660", path, mode)
	}
}

// remote is a driver on TCP.
type remote struct {
	address string
	// folder holds the client's certificate and the CA.
	folder string
	peer   mtls.Identity
}

// remote is the driver; the check ends where it is not on TCP.
func (t *trial) remote() remote {
	rest, tcp := strings.CutPrefix(t.config.Endpoint, "dns:///")
	if !tcp {
		t.notApplicable("the driver is not on TCP")
	}
	// The config was checked.
	address, query, _ := strings.Cut(rest, "?")
	values, _ := url.ParseQuery(query)
	identity := values.Get("identity")
	if identity == "" {
		identity, _, _ = net.SplitHostPort(address)
	}
	return remote{address: address, folder: values.Get("tls"), peer: mtls.Identity(identity)}
}

// showing are credentials that show this certificate, whomever the server trusts; an empty one
// shows none.
func (r remote) showing(shown tls.Certificate) (credentials.TransportCredentials, error) {
	config, err := mtls.Client(r.folder, r.peer)
	if err != nil {
		return nil, err
	}
	config.Certificates = nil
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil }
	return credentials.NewTLS(config), nil
}

// ask makes one call on a connection of its own.
func (r remote) ask(ctx context.Context, creds credentials.TransportCredentials) error {
	conn, err := grpc.NewClient("passthrough:///"+r.address, grpc.WithTransportCredentials(creds), grpc.WithDisableRetry())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, contract.DefaultIdentityDeadline)
	defer cancel()
	_, err = handshakev1.NewHandshakeServiceClient(conn).GetPluginInfo(ctx, pluginInfoRequest())
	return err
}

// mustNotServe notes a breach where the driver takes a call of this client.
func (r remote) mustNotServe(ctx context.Context, t *trial, client string, creds credentials.TransportCredentials) {
	switch status.Code(r.ask(ctx, creds)) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Unauthenticated, codes.PermissionDenied:
		return
	}
	t.errorf("the driver takes calls of a client %s", client)
}

// mustRefuse notes a breach where the driver takes a call of a client that shows this certificate.
func (r remote) mustRefuse(ctx context.Context, t *trial, client string, shown tls.Certificate) {
	creds, err := r.showing(shown)
	if err != nil {
		t.fatalf("read what stands in tls of the endpoint: %v", err)
	}
	r.mustNotServe(ctx, t, client, creds)
}

func plaintext(ctx context.Context, t *trial) {
	t.remote().mustNotServe(ctx, t, "that speaks no TLS", insecure.NewCredentials())
}

// oldTLS shows a good certificate, by a version of TLS that is too old.
func oldTLS(ctx context.Context, t *trial) {
	r := t.remote()
	config, err := mtls.Client(r.folder, r.peer)
	if err != nil {
		t.fatalf("read what stands in tls of the endpoint: %v", err)
	}
	config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	r.mustNotServe(ctx, t, "that speaks TLS 1.2", credentials.NewTLS(config))
}

func noCertificate(ctx context.Context, t *trial) {
	t.remote().mustRefuse(ctx, t, "that shows no certificate", tls.Certificate{})
}

func foreignCertificate(ctx context.Context, t *trial) {
	r := t.remote()
	shown, err := forged(r.folder)
	if err != nil {
		t.fatalf("forge a certificate: %v", err)
	}
	r.mustRefuse(ctx, t, "that has made its certificate itself", shown)
}

func expiredCertificate(ctx context.Context, t *trial) {
	r := t.remote()
	folder := t.config.ExpiredCertificate
	if folder == "" {
		t.notRun("name a folder with a certificate of core's that has expired, tls.crt and tls.key, as expiredCertificate")
	}
	shown, err := load(folder)
	if err != nil {
		t.notRun("expiredCertificate: " + err.Error())
	}
	if time.Now().Before(shown.Leaf.NotAfter) {
		t.notRun("expiredCertificate: it has not expired")
	}
	r.mustRefuse(ctx, t, "whose certificate has expired", shown)
}
