package session_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/transport/mtls/mtlstest"
)

func TestCABundle(t *testing.T) {
	c := newCloud(t)
	server := c.serve(func(h http.Handler) *httptest.Server {
		server := httptest.NewUnstartedServer(h)
		server.EnableHTTP2 = true
		server.StartTLS()
		return server
	})
	pool := session.NewPool(session.Options{})
	account := c.account()
	_, err := pool.Open(t.Context(), account, "")
	expect(t, err, "OUTCOME_UNKNOWN", "certificate signed by unknown authority")
	account.CACert = bundle(server)
	s, err := pool.Open(t.Context(), account, "")
	if err != nil {
		t.Fatal(err)
	}
	c.on(listServers, func(w http.ResponseWriter, r *http.Request) {
		if r.Proto != "HTTP/1.1" {
			t.Errorf("%s, which sends a POST twice where a server says that it has done nothing", r.Proto)
		}
		say(200, `{"servers": []}`)(w, r)
	})
	if err := list(t.Context(), s); err != nil {
		t.Error(err)
	}
}

// A cloud that asks for a client certificate gets the account's; one that is not to be verified is
// reached though nobody knows its CA.
func TestClientCertificates(t *testing.T) {
	authority, err := mtlstest.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := authority.Issue(folder, "client.test", time.Hour, authority); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM([]byte(read("ca.crt")))
	c := newCloud(t)
	c.serve(func(h http.Handler) *httptest.Server {
		server := httptest.NewUnstartedServer(h)
		server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, MinVersion: tls.VersionTLS12}
		server.StartTLS()
		return server
	})
	pool := session.NewPool(session.Options{})
	account := c.account()
	account.Verify = spec.VerifyNone
	_, err = pool.Open(t.Context(), account, "")
	expect(t, err, "OUTCOME_UNKNOWN", "certificate required")
	account.ClientCert, account.ClientKey = read("tls.crt"), read("tls.key")
	if _, err := pool.Open(t.Context(), account, ""); err != nil {
		t.Error(err)
	}
	account.Verify = ""
	_, err = pool.Open(t.Context(), account, "")
	expect(t, err, "OUTCOME_UNKNOWN", "certificate signed by unknown authority")
}

func TestOldTLSIsRefused(t *testing.T) {
	c := newCloud(t)
	server := c.serve(func(h http.Handler) *httptest.Server {
		server := httptest.NewUnstartedServer(h)
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
		server.StartTLS()
		return server
	})
	account := c.account()
	account.CACert = bundle(server)
	_, err := session.NewPool(session.Options{}).Open(t.Context(), account, "")
	expect(t, err, "OUTCOME_UNKNOWN", "protocol version")
}

// bundle is the certificate of a server.
func bundle(server *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func TestAClosedServer(t *testing.T) {
	c := newCloud(t)
	server := c.serve(httptest.NewServer)
	server.Close()
	_, err := session.NewPool(session.Options{}).Open(t.Context(), c.account(), "")
	expect(t, err, "OUTCOME_UNKNOWN", "The cloud did not answer: "+strings.TrimPrefix(c.url, "http://")+": connection refused.")
}
