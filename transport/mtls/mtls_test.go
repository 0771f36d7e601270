package mtls_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/transport/mtls"
	"github.com/millwright-dev/millwright/transport/mtls/mtlstest"
)

// authority is one that a test cannot go on without.
type authority struct {
	*mtlstest.Authority
	t *testing.T
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a, err := mtlstest.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return &authority{a, t}
}

// Issue returns the folder.
func (a *authority) Issue(folder, identity string, valid time.Duration, trusts *authority) string {
	a.t.Helper()
	if err := a.Authority.Issue(folder, identity, valid, trusts.Authority); err != nil {
		a.t.Fatal(err)
	}
	return folder
}

func identity(t *testing.T, text string) mtls.Identity {
	t.Helper()
	id, err := mtls.ParseIdentity(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// serve echoes on connections of peer, by what is in the folder.
func serve(t *testing.T, folder string, peer mtls.Identity) string {
	t.Helper()
	config, err := mtls.Server(folder, peer)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// ask sends a word and returns what came back.
func ask(ctx context.Context, address string, config *tls.Config) error {
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, 5))
	return err
}

func TestOnlyTrustedPeersMayTalk(t *testing.T) {
	const driverName, coreID = "driver.example", "spiffe://trust.example/core"
	ours, others := newAuthority(t), newAuthority(t)
	address := serve(t, ours.Issue(t.TempDir(), driverName, time.Hour, ours), identity(t, coreID))
	for name, c := range map[string]struct {
		by, trusts *authority
		as         string
		valid      time.Duration
		driver     string
		says       string
	}{
		"core":                         {ours, ours, coreID, time.Hour, driverName, ""},
		"somebody of the same CA":      {ours, ours, "spiffe://trust.example/other", time.Hour, driverName, "bad certificate"},
		"a name where an id is wanted": {ours, ours, "core", time.Hour, driverName, "bad certificate"},
		"core by another CA":           {others, ours, coreID, time.Hour, driverName, "certificate"},
		"core with an old certificate": {ours, ours, coreID, -time.Hour, driverName, "certificate"},
		"core that trusts another CA":  {ours, others, coreID, time.Hour, driverName, "unknown authority"},
		"core that looks for another":  {ours, ours, coreID, time.Hour, "other.example", "driver.example"},
		"core that wants an id":        {ours, ours, coreID, time.Hour, "spiffe://trust.example/driver", "spiffe://trust.example/driver"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := mtls.Client(c.by.Issue(t.TempDir(), c.as, c.valid, c.trusts), identity(t, c.driver))
			if err != nil {
				t.Fatal(err)
			}
			err = ask(t.Context(), address, config)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
		})
	}
	t.Run("without a certificate", func(t *testing.T) {
		if err := ask(t.Context(), address, &tls.Config{InsecureSkipVerify: true}); err == nil {
			t.Error("it is served")
		}
	})
	t.Run("with TLS 1.2", func(t *testing.T) {
		config, err := mtls.Client(ours.Issue(t.TempDir(), coreID, time.Hour, ours), identity(t, driverName))
		if err != nil {
			t.Fatal(err)
		}
		config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		if err := ask(t.Context(), address, config); err == nil {
			t.Error("it is served")
		}
	})
	t.Run("in plain text", func(t *testing.T) {
		var d net.Dialer
		conn, err := d.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = conn.Write([]byte("hello"))
		answer, _ := io.ReadAll(conn)
		if strings.Contains(string(answer), "hello") {
			t.Error("it is served")
		}
	})
}

// TestRotation: what is in the folder counts for the next connection, also another CA, and a folder
// that is being changed serves with what it held.
func TestRotation(t *testing.T) {
	const driverName, coreName = "driver.example", "core.example"
	before, after := newAuthority(t), newAuthority(t)
	driver, core := t.TempDir(), t.TempDir()
	address := serve(t, before.Issue(driver, driverName, time.Hour, before), identity(t, coreName))
	try := func() error {
		config, err := mtls.Client(core, identity(t, driverName))
		if err != nil {
			return err
		}
		return ask(t.Context(), address, config)
	}
	before.Issue(core, coreName, time.Hour, before)
	if err := try(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(driver, "tls.key"), []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := try(); err != nil {
		t.Errorf("in the middle of a change: %v", err)
	}
	after.Issue(driver, driverName, time.Hour, after)
	if err := try(); err == nil {
		t.Error("the CA before is still trusted")
	}
	after.Issue(core, coreName, time.Hour, after)
	if err := try(); err != nil {
		t.Errorf("after both have changed: %v", err)
	}
}

func TestFoldersThatCannotBeUsed(t *testing.T) {
	ca := newAuthority(t)
	for name, c := range map[string]struct {
		spoil func(folder string) error
		says  string
	}{
		"no certificate": {func(f string) error { return os.Remove(filepath.Join(f, "tls.crt")) }, "tls.crt"},
		"no key":         {func(f string) error { return os.Remove(filepath.Join(f, "tls.key")) }, "tls.key"},
		"no CA":          {func(f string) error { return os.Remove(filepath.Join(f, "ca.crt")) }, "ca.crt"},
		"an empty CA":    {func(f string) error { return os.WriteFile(filepath.Join(f, "ca.crt"), nil, 0o600) }, "holds no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := ca.Issue(t.TempDir(), "x", time.Hour, ca)
			if err := c.spoil(folder); err != nil {
				t.Fatal(err)
			}
			for side, open := range map[string]func(string, mtls.Identity) (*tls.Config, error){"client": mtls.Client, "server": mtls.Server} {
				if _, err := open(folder, "x"); err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: error %v, want one that says %q", side, err, c.says)
				}
			}
		})
	}
}

func TestParseIdentity(t *testing.T) {
	for text, good := range map[string]bool{
		"driver": true, "driver.ns.svc": true, "192.0.2.1": true, "::1": true, "spiffe://trust.example/ns/driver": true,
		"": false, "a b": false, "*.example": false, "host:9443": false, "spiffe://trust.example": false, "spiffe:///x": false,
		"https://example/x": false, "spiffe://trust.example/x?y": false,
	} {
		if _, err := mtls.ParseIdentity(text); (err == nil) != good {
			t.Errorf("%q: error %v", text, err)
		}
	}
}
