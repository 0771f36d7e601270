package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// with is a request that these secrets go with.
func with(secrets ...string) *driverv1alpha1.CreateMachineRequest {
	values := map[string][]byte{}
	for i, secret := range secrets {
		values[fmt.Sprint(i)] = []byte(secret)
	}
	return &driverv1alpha1.CreateMachineRequest{Provider: &driverv1alpha1.ProviderContext{Secrets: values}}
}

func TestText(t *testing.T) {
	const key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END KEY-----\n"
	for _, tc := range []struct {
		name    string
		secrets []string
		text    string
		want    string
	}{
		{"nothing", nil, "login failed", "login failed"},
		{"nowhere", []string{"hunter22"}, "login failed", "login failed"},
		{"twice", []string{"hunter22"}, "hunter22, hunter22!", "[redacted], [redacted]!"},
		{"one begins as another", []string{"admin1", "admin1-and-more"}, "admin1-and-more of admin1", "[redacted] of [redacted]"},
		{"one ends as another begins", []string{"abcdefgh", "fghijklm"}, "<abcdefghijklm>", "<[redacted]>"},
		{"too short to be one", []string{"abcde"}, "abcde", "abcde"},
		{"cut off at the end", []string{"0123456789abcdef"}, "token 0123456789ab…", "token [redacted]…"},
		{"cut off in the middle", []string{"0123456789abcdef"}, "token 0123456789abc... is wrong", "token [redacted]... is wrong"},
		{"cut off within a character", []string{"0123456789ä"}, "0123456789ö", "[redacted]\uFFFD"},
		{"a false start", []string{"abcabcabcabcd"}, "abcabcabcabcabcd", "[redacted]"},
		{"what the mark says", []string{"redacted", "[redacted]"}, "redacted", "redacted"},
		{"a line of a key", []string{key}, "at MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "at [redacted]"},
		{"a line of a key within JSON", []string{`{"k":"` + strings.ReplaceAll(key, "\n", `\n`) + `"}`}, "at BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj", "at [redacted]"},
		{"a word of a document", []string{"user: me\npassword: 'correct-horse'\n"}, "correct-horse is wrong", "[redacted] is wrong"},
		{"a short word of a document", []string{"user: me\npassword: 'horse'\n"}, "horse is wrong", "horse is wrong"},
	} {
		if got := Of(with(tc.secrets...)).Text(tc.text); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	var none *Secrets
	if got := none.Text("hunter22"); got != "hunter22" {
		t.Errorf("without secrets: %q", got)
	}
}

func TestTextKnowsEachForm(t *testing.T) {
	const secret = "s3cr3t/ca+nary \"&=?ü"
	asJSON, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]string{
		"raw": secret, "quoted": fmt.Sprintf("%q", secret), "ASCII": fmt.Sprintf("%+q", secret), "JSON": string(asJSON),
		"base64":            base64.StdEncoding.EncodeToString([]byte(secret)),
		"URL base64":        base64.URLEncoding.EncodeToString([]byte(secret)),
		"raw base64":        base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"basic auth":        base64.StdEncoding.EncodeToString([]byte("me:" + secret)),
		"basic auth, other": base64.StdEncoding.EncodeToString([]byte("you:" + secret + "\n")),
		"basic auth, third": base64.StdEncoding.EncodeToString([]byte("them:" + secret + "!")),
		"hex":               hex.EncodeToString([]byte(secret)), "HEX": fmt.Sprintf("%X", secret),
		"query": url.QueryEscape(secret), "path": url.PathEscape(secret), "component": strings.ReplaceAll(url.QueryEscape(secret), "+", "%20"),
		"bytes": fmt.Sprint([]byte(secret)),
	}
	s := Of(with(secret))
	for name, form := range forms {
		got := s.Text("<" + form + ">")
		// What stands beside it in base64 stays, and so do the characters that depend on both.
		if rest := strings.Trim(strings.ReplaceAll(got, Mark, ""), "<>[]\"="); len(rest) > 12 || !strings.Contains(got, Mark) {
			t.Errorf("%s: %q became %q", name, form, got)
		}
		if s.in(got) {
			t.Errorf("%s: %q still holds the secret", name, got)
		}
	}
}

func TestUserDataIsASecret(t *testing.T) {
	request := with("hunter22")
	request.UserData = []byte("#cloud-config\nruncmd: [kubeadm join --token abcdef.0123456789abcdef 10.0.0.1]\n")
	s := Of(request)
	for _, text := range []string{
		string(request.GetUserData()), base64.StdEncoding.EncodeToString(request.GetUserData()), "bad token abcdef.0123456789abcdef", "hunter22",
	} {
		if got := s.Text(text); !strings.Contains(got, Mark) || strings.Contains(got, "abcdef") {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestMemory(t *testing.T) {
	var m Memory
	probe := &driverv1alpha1.ProbeRequest{}
	if got := m.Of(probe).Text("hunter22"); got != "hunter22" {
		t.Errorf("before any request: %q", got)
	}
	if got := m.Of(with("hunter22")).Text("hunter22"); got != Mark {
		t.Errorf("in its own request: %q", got)
	}
	m.Of(with("another", strings.Repeat("long", maxRememberedBytes)))
	if got := m.Of(probe).Text("hunter22 and another"); got != "[redacted] and [redacted]" {
		t.Errorf("later: %q", got)
	}
	if got := m.Of(with("another")).Text("hunter22"); got != "hunter22" {
		t.Errorf("in another's request: %q", got)
	}
	request := with()
	request.UserData = []byte("0123456789")
	if got := m.Of(request).Text("0123456789 another"); got != "[redacted] [redacted]" {
		t.Errorf("with user data alone: %q", got)
	}
	for i := range maxRemembered {
		m.Of(with(fmt.Sprintf("secret-%d", i)))
		m.Of(with("secret-0"))
	}
	if got := m.Of(probe).Text("hunter22 secret-0 secret-63"); got != "hunter22 [redacted] [redacted]" || len(m.known) != maxRemembered {
		t.Errorf("after many: %q, and %d are remembered", got, len(m.known))
	}
}

// FuzzText puts a secret into a text in each form.
func FuzzText(f *testing.F) {
	f.Add("hunter22", "login with ", " failed", 0)
	f.Add("s3cr3t/ca+nary \"&=?", "<", ">", 3)
	f.Add("ab\xffcdef\x00", "\xfe", "", 7)
	f.Add("a: b\npassword: 'correct-horse'", "", "…", 1)
	f.Fuzz(func(t *testing.T, secret, before, after string, form int) {
		s := Of(with(secret))
		forms := append([]string{secret}, formsOf(secret)...)
		text := before + forms[min(max(form, 0), len(forms)-1)] + after
		got := s.Text(text)
		if len(secret) < minSecret {
			if got != text {
				t.Errorf("%q became %q without a secret", text, got)
			}
			return
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%q became %q, which is not UTF-8", text, got)
		}
		for _, form := range formsOf(secret) {
			if strings.Contains(strings.ReplaceAll(got, Mark, "\x01"), form) {
				t.Errorf("%q holds %q", got, form)
			}
		}
		if again := s.Text(got); again != got && utf8.ValidString(got) {
			t.Errorf("%q became %q when looked at again", got, again)
		}
	})
}
