package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
)

// full is an account in which every field holds its own name.
func full(t *testing.T) Account {
	t.Helper()
	var a Account
	for field, value := range reflect.ValueOf(&a).Elem().Fields() {
		if field.Type.Kind() != reflect.String {
			t.Fatalf("%s is not a string: Key reads strings alone", field.Name)
		}
		value.SetString("secret-" + field.Name)
	}
	return a
}

func TestAccountsRedactThemselves(t *testing.T) {
	a := full(t)
	var logged bytes.Buffer
	plain, asJSON := slog.New(slog.NewTextHandler(&logged, nil)), slog.New(slog.NewJSONHandler(&logged, nil))
	for _, log := range []*slog.Logger{plain, asJSON} {
		log.Info("account", "account", a, "pointer", &a, "spec", Spec{Account: a}, "environment", Environment{Account: a}, "list", []Account{a})
	}
	marshalled, err := json.Marshal(map[string]any{"account": a, "spec": Spec{Account: a}})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{"slog": logged.String(), "json": string(marshalled), "error": fmt.Errorf("log in as %v: %w", a, fmt.Errorf("%s", a)).Error()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X"} {
		told[verb] = fmt.Sprintf(strings.Repeat(verb+" ", 5), a, &a, Spec{Account: a}, Environment{Account: a}, []Account{a})
	}
	for by, text := range told {
		if strings.Contains(text, "secret-") || strings.Contains(text, fmt.Sprintf("%x", "secret-")) {
			t.Errorf("%s shows the account: %s", by, text)
		}
		if !strings.Contains(text, "redacted") {
			t.Errorf("%s does not say that something is left out: %s", by, text)
		}
	}
}

func TestKey(t *testing.T) {
	seen := map[string]string{Account{}.Key(): "nothing", full(t).Key(): "everything"}
	for field := range reflect.ValueOf(Account{}).Fields() {
		for _, text := range []string{"x", "y", "1:x"} {
			var a Account
			reflect.ValueOf(&a).Elem().FieldByIndex(field.Index).SetString(text)
			what := field.Name + "=" + text
			if other, has := seen[a.Key()]; has {
				t.Errorf("%s has the key of %s", what, other)
			}
			seen[a.Key()] = what
			if same := a; same.Key() != a.Key() || len(a.Key()) != 64 || strings.Contains(a.Key(), text) && len(text) > 1 {
				t.Errorf("%s: %s", what, a.Key())
			}
		}
	}
	if (Account{Region: "ab", Interface: "c"}).Key() == (Account{Region: "a", Interface: "bc"}).Key() {
		t.Error("fields run into one another")
	}
}

func TestMethod(t *testing.T) {
	for name, tc := range map[string]struct {
		account Account
		want    Method
	}{
		"nothing":                             {Account{IdentityEndpoint: "x", ProjectID: "p"}, MethodNone},
		"a user":                              {Account{Username: "u", Password: "p"}, MethodPassword},
		"a user by id":                        {Account{UserID: "u", Password: "p"}, MethodPassword},
		"a token":                             {Account{Token: "t"}, MethodToken},
		"an application credential":           {Account{ApplicationCredentialID: "i", ApplicationCredentialSecret: "s"}, MethodApplicationCredential},
		"an application credential of a user": {Account{ApplicationCredentialName: "n", Username: "u", ApplicationCredentialSecret: "s"}, MethodApplicationCredential},
	} {
		if got := tc.account.Method(); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		if text := tc.account.String(); tc.want != "" && !strings.Contains(text, string(tc.want)) {
			t.Errorf("%s: %s does not say how it logs in", name, text)
		}
	}
}
