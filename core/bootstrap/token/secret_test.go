package token

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var (
	owner   = Owner{UID: "1b671a64-40d5-491e-99b0-da01ff1f3341", Machine: types.NamespacedName{Namespace: "pool", Name: "worker-1"}}
	expires = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
)

const secret = "0123456789abcdef"

// TestLIFE3_TokenIDIsDerivedFromTheMachineUID: the same uid has the same id in each process and
// each release, and ids are what Kubernetes accepts.
func TestLIFE3_TokenIDIsDerivedFromTheMachineUID(t *testing.T) {
	if got := ID(owner.UID); got != "0yw4n5" {
		t.Errorf("the id of the uid has changed to %s: tokens that were minted before are not found any more", got)
	}
	seen := map[string]bool{}
	valid := regexp.MustCompile(`^[a-z0-9]{6}$`)
	for i := range 20_000 {
		id := ID(fmt.Sprint(i))
		if !valid.MatchString(id) {
			t.Fatalf("uid %d has the id %q", i, id)
		}
		seen[id] = true
	}
	if len(seen) < 19_990 {
		t.Errorf("20,000 uids have %d ids", len(seen))
	}
}

// TestLIFE3_SecretIsReadBack: what NewSecret writes is what the API server's authenticator wants,
// and what Read reads.
func TestLIFE3_SecretIsReadBack(t *testing.T) {
	s := NewSecret(owner, secret, expires)
	want := map[string]string{
		"token-id": ID(owner.UID), "token-secret": secret, "expiration": "2026-11-24T12:00:00Z",
		"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "false",
		"auth-extra-groups": "system:bootstrappers:millwright", "description": "With this the VM of Machine pool/worker-1 joins.",
	}
	got := map[string]string{}
	for k, v := range s.Data {
		got[k] = string(v)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s.Namespace != "kube-system" || s.Name != "bootstrap-token-"+ID(owner.UID) {
		t.Errorf("it is %s/%s", s.Namespace, s.Name)
	}
	read, err := Read(s)
	if err != nil {
		t.Fatal(err)
	}
	if read.Owner != owner || !read.ExpiresAt.Equal(expires) || read.Value() != ID(owner.UID)+"."+secret {
		t.Errorf("read back: %s of %+v, expires %s", read, read.Owner, read.ExpiresAt)
	}
	if printed := fmt.Sprintf("%v %+v %#v %s", read, read, read, read); strings.Contains(printed, secret) {
		t.Error("a printed token tells its secret")
	}
}

// TestReadRefuses: a Secret that is not a machine's token is named, without what it holds.
func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Secret)
		names  string
	}{
		"another type":           {func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }, "type"},
		"kubeadm's":              {func(s *corev1.Secret) { s.Labels, s.Annotations = nil, nil }, "no machine's"},
		"without its Machine":    {func(s *corev1.Secret) { s.Annotations = nil }, "cluster.k8s.io/machine"},
		"of another uid":         {func(s *corev1.Secret) { s.Labels[MachineUIDLabel] = "other" }, "token-id"},
		"under another name":     {func(s *corev1.Secret) { s.Name = "bootstrap-token-abcdef" }, "token-id"},
		"without its secret":     {func(s *corev1.Secret) { delete(s.Data, "token-secret") }, "token-secret"},
		"without its expiration": {func(s *corev1.Secret) { delete(s.Data, "expiration") }, "expiration"},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSecret(owner, secret, expires)
			c.change(s)
			read, err := Read(s)
			if err == nil || !strings.Contains(err.Error(), c.names) || strings.Contains(err.Error(), secret) {
				t.Errorf("error %v, want one that names %q", err, c.names)
			}
			if read != (Token{}) {
				t.Error("a token besides the error")
			}
		})
	}
}

// TestLIFE3_TokenLastsAsLongAsItIsNeeded: five minutes more than the machine has to join, an hour
// where that is for ever; it is extended when the machine has failed, or still needs it.
func TestLIFE3_TokenLastsAsLongAsItIsNeeded(t *testing.T) {
	for startup, want := range map[time.Duration]time.Duration{
		0: time.Hour, 20 * time.Minute: 25 * time.Minute, time.Minute: 6 * time.Minute, 3 * time.Hour: 3*time.Hour + 5*time.Minute,
	} {
		if got := Lifetime(startup); got != want {
			t.Errorf("%s: %s, want %s", startup, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		startup := time.Duration(rapid.IntRange(0, 1e6).Draw(t, "seconds")) * time.Second
		s := NewSecret(owner, secret, expires.Add(Lifetime(startup)))
		read, err := Read(s)
		if err != nil {
			t.Fatal(err)
		}
		if at := read.RenewAt(); !at.After(expires.Add(startup)) && startup > 0 || !at.Before(read.ExpiresAt) || !at.After(expires) {
			t.Fatalf("with %s it expires at %s and is extended at %s", startup, read.ExpiresAt, at)
		}
	})
}
