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
	"slices"
	"sync"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/proto/redact"
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

// canaries are a secret and user data that must come up nowhere, and the config's credentials, by
// what they are, which must not either.
type canaries struct {
	secret, userData string
	credentials      map[string][]byte
}

// newCanaries returns some that were never there before.
func newCanaries(t *trial) canaries {
	return canaries{secret: random() + "+a/secret=", userData: random() + "+user/data=", credentials: t.credentials}
}

// in says which of them a text holds, and how.
func (c canaries) in(text []byte) []string {
	found := append(waysIn(text, "a secret", c.secret), waysIn(text, "user data", c.userData)...)
	for what, value := range c.credentials {
		found = append(found, waysIn(text, what, string(value))...)
	}
	return found
}

// waysIn says in which forms a text holds a secret, which it calls what. Beside forms of its own
// it looks for those that core takes out of what people read, cut-off ones among them.
func waysIn(text []byte, what, secret string) []string {
	var found []string
	for how, form := range forms(secret) {
		if bytes.Contains(text, []byte(form)) {
			found = append(found, what+", "+how)
		}
	}
	if whole := string(text); len(found) == 0 && (&redact.Secrets{}).And([]byte(secret)).Text(whole) != whole {
		return []string{what + ", in another form, or in part"}
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

// differing are the values of secrets that others does not have as well, by what they are. What
// badSecrets and secrets have in common opens nothing: it is a region, or somebody's name.
func differing(field string, secrets, others map[string][]byte) map[string][]byte {
	found := map[string][]byte{}
	for name, value := range secrets {
		if other, is := others[name]; len(value) >= leastCredential && (!is || !bytes.Equal(value, other)) {
			found[field+"."+name] = value
		}
	}
	return found
}

// findCredentials notes which secrets of the config are looked for, and which are taken out of the
// report. Without badSecrets nothing tells a credential from a region: none is looked for.
func (s *session) findCredentials() {
	known := differing("secrets", s.secrets, s.badSecrets)
	maps.Copy(known, differing("badSecrets", s.badSecrets, s.secrets))
	if len(s.badSecrets) > 0 {
		s.credentials = maps.Clone(known)
	}
	maps.Copy(known, differing("otherSecrets", s.otherSecrets, s.badSecrets))
	s.untold = (&redact.Secrets{}).And(slices.Collect(maps.Values(known))...)
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
	c := newCanaries(t)
	t.live(ctx, c, func() {})
	wrote := output(t)
	if len(before) <= len(wrote) { // else the log was begun anew
		wrote = wrote[len(before):]
	}
	for _, what := range c.in(wrote) {
		t.errorf("the driver has written %s", what)
	}
}

// noSecretsInAnswers looks for the secrets of a machine's whole life, and of some that fail, in
// what the driver answers.
func noSecretsInAnswers(ctx context.Context, t *trial) {
	c := newCanaries(t)
	t.heard = func(answer any, err error) {
		for where, text := range said(answer, err) {
			for _, what := range c.in(text) {
				t.errorf("%s holds %s", where, what)
			}
		}
	}
	t.live(ctx, c, func() {})
	large := t.machine()
	large.userData = append(t.noise(t.maxUserData()), c.userData...)
	large.secrets = map[string][]byte{"millwrightConformance": []byte(c.secret)}
	if _, err := large.create(ctx); err == nil {
		t.fatalf("a create with too much user data was accepted")
	}
	if len(t.badSecrets) == 0 {
		return
	}
	// Whether they are refused as they have to be, others try.
	refused := t.machine()
	refused.secrets = t.badSecrets
	_, _ = refused.get(ctx)
	_, _ = refused.remove(ctx)
	if t.has(featureList) {
		_, _ = t.machines.ListMachines(ctx, &driverv1alpha1.ListMachinesRequest{Meta: refused.meta(), Provider: refused.provider()})
	}
}

// said is what an answer or an error holds beside ids, by what it is.
func said(answer any, err error) map[string][]byte {
	texts := map[string][]byte{}
	if err != nil {
		texts["an error"], _ = proto.Marshal(status.Convert(err).Proto()) // what has come can go
		return texts
	}
	described := []*driverv1alpha1.Machine{}
	switch a := answer.(type) {
	case interface {
		GetMachine() *driverv1alpha1.Machine
	}:
		described = append(described, a.GetMachine())
	case *driverv1alpha1.ListMachinesResponse:
		described = a.GetMachines()
	}
	for _, m := range described {
		texts["a last_known_state"] = append(texts["a last_known_state"], m.GetLastKnownState()...)
		texts["a reason or message"] = append(texts["a reason or message"], m.GetReason()+" "+m.GetMessage()+"\n"...)
	}
	return texts
}
