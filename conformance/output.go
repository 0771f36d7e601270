package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"sync"
)

// record keeps what a driver writes. It is safe for concurrent use.
type record struct {
	also io.Writer

	mu    sync.Mutex
	wrote bytes.Buffer
}

// Write implements io.Writer.
func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.also != nil {
		_, _ = r.also.Write(b) // who wants to see it, too
	}
	return r.wrote.Write(b)
}

// all is what was written so far.
func (r *record) all() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.wrote.Bytes())
}

// canaries are a secret and user data that must come up nowhere.
type canaries struct{ secret, userData string }

// newCanaries returns some that were never there before.
func newCanaries() canaries {
	return canaries{secret: "canary+of/secrets=" + random(), userData: "canary+of/user-data=" + random()}
}

// in says which of them a text holds, and how.
func (c canaries) in(text []byte) []string {
	var found []string
	for what, value := range map[string]string{"a secret": c.secret, "user data": c.userData} {
		found = append(found, waysIn(text, what, value)...)
	}
	return found
}

// waysIn says in which forms a text holds a secret, which it calls what.
func waysIn(text []byte, what, secret string) []string {
	var found []string
	for how, form := range forms(secret) {
		if bytes.Contains(text, []byte(form)) {
			found = append(found, what+", "+how)
		}
	}
	return found
}

// forms are the ways in which a secret gets into a text. In base64 it looks different after each
// number of bytes before it that is no multiple of three.
func forms(secret string) map[string]string {
	all := map[string]string{"as it is": secret, "in hexadecimal": hex.EncodeToString([]byte(secret)), "escaped as in an URL": url.QueryEscape(secret)}
	for before := range 3 {
		for how, encoding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64 for URLs": base64.RawURLEncoding} {
			whole := encoding.EncodeToString(append(make([]byte, before), secret...))
			// Its first and last characters depend on what stands beside it.
			first := (before*8 + 5) / 6
			last := (before + len(secret)) * 8 / 6
			all[fmt.Sprintf("in %s, after %d bytes", how, before)] = whole[first:last]
		}
	}
	return all
}

// live has a machine with the canaries live its whole life, and two fail, one for its credentials.
// meanwhile is called when the VM runs.
func (t *trial) live(ctx context.Context, c canaries, meanwhile func()) {
	m := t.machine()
	m.userData = []byte("#cloud-config\n# " + c.userData)
	m.secrets = map[string][]byte{"millwrightConformance": []byte(c.secret)}
	maps.Copy(m.secrets, t.secrets)
	m.running(ctx)
	if _, err := m.get(ctx); err != nil {
		t.errorf("a status: %v", err)
	}
	failing := t.machine()
	failing.secrets, failing.userData, failing.spec = m.secrets, m.userData, []byte("{")
	if _, err := failing.create(ctx); err == nil {
		t.errorf("a create without a spec was accepted")
	}
	if len(t.badSecrets) > 0 {
		refused := t.machine()
		refused.secrets = t.badSecrets
		if _, err := refused.create(ctx); err == nil {
			t.errorf("a create with badSecrets was accepted")
		}
	}
	meanwhile()
	m.gone(ctx)
}

// leastCredential is how long, in bytes, a value of the config's secrets is at least to be looked
// for: a short one comes up by chance.
const leastCredential = 8

// credentialsIn says which secrets of a field of the config a text holds, and how. What badSecrets
// and secrets have in common opens nothing: it is a region, or somebody's name, and not looked for.
func credentialsIn(text []byte, field string, secrets, others map[string][]byte) []string {
	var found []string
	for name, value := range secrets {
		if other, is := others[name]; len(value) < leastCredential || is && bytes.Equal(value, other) {
			continue
		}
		found = append(found, waysIn(text, field+"."+name, string(value))...)
	}
	return found
}

// output is what the driver has written so far.
func output(t *trial) []byte {
	if t.driver.Process() != nil {
		return t.wrote.all()
	}
	wrote, err := os.ReadFile(t.config.DriverLog)
	if err != nil {
		t.fatalf("driverLog: %v", err)
	}
	return wrote
}

// noSecretsInOutput looks for the secrets of a machine's whole life, and of two that fail, in what
// the driver has written meanwhile.
func noSecretsInOutput(ctx context.Context, t *trial) {
	if t.driver.Process() == nil && t.config.DriverLog == "" {
		t.notRun("it has to read what the driver writes: name its log as driverLog, or have it started, by an endpoint exec:///path")
	}
	before := output(t)
	c := newCanaries()
	t.live(ctx, c, func() {})
	wrote := output(t)
	if len(before) <= len(wrote) { // else the log was begun anew
		wrote = wrote[len(before):]
	}
	found := c.in(wrote)
	if len(t.badSecrets) > 0 {
		found = append(found, credentialsIn(wrote, "secrets", t.secrets, t.badSecrets)...)
		found = append(found, credentialsIn(wrote, "badSecrets", t.badSecrets, t.secrets)...)
	}
	for _, what := range found {
		t.errorf("the driver has written %s", what)
	}
}
