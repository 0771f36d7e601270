package conformance

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// A secret is found in whatever form it comes, and nothing else is.
func TestSecretsAreFoundInEveryForm(t *testing.T) {
	const secret = "let me+in/4711"
	for name, tc := range map[string]struct {
		text string
		is   bool
	}{
		"as it is":       {"token " + secret + " was refused", true},
		"in base64":      {base64.StdEncoding.EncodeToString([]byte("user:" + secret)), true},
		"as Go's bytes":  {fmt.Sprint([]byte(secret)), true},
		"as JSON":        {fmt.Sprintf("%q", secret), true},
		"cut off":        {"let me+in/4…", true},
		"something else": {"let me out", false},
	} {
		if found := waysIn([]byte(tc.text), "it", secret); (len(found) > 0) != tc.is {
			t.Errorf("%s: %q is found as %q", name, tc.text, found)
		}
	}
}

// What a driver says of the config's credentials does not get into the report. What good and bad
// ones have in common does: it opens nothing.
func TestReportsHoldNoCredentials(t *testing.T) {
	s := &session{target: &target{}, secrets: map[string][]byte{"token": []byte("opens-everything"), "region": []byte("RegionOne")},
		badSecrets:   map[string][]byte{"token": []byte("opens-nothing"), "region": []byte("RegionOne")},
		otherSecrets: map[string][]byte{"token": []byte("opens-another")}}
	s.findCredentials()
	tried := newTrial(s)
	tried.errorf("%s, %s and %s were refused in %s", "opens-everything", "opens-nothing", "opens-another", "RegionOne")
	if got := strings.Join(tried.breaches, ""); got != "[redacted], [redacted] and [redacted] were refused in RegionOne" {
		t.Errorf("the report says %q", got)
	}
	if len(s.credentials) != 2 {
		t.Errorf("looked for are %q", s.credentials)
	}
}
