package api

import (
	"strings"
	"testing"
)

func TestPythonic(t *testing.T) {
	for raw, want := range map[string]string{
		``: "None", `null`: "None", ` true`: "True", `false`: "False", `1.50`: "1.50",
		`"a"`: "'a'", `"it's"`: `"it's"`, `"it's \"so\""`: `'it\'s "so"'`, `"a\nb\\"`: `'a\nb\\'`,
		`[1, "a", null]`: "[1, 'a', None]", `{"b": 1, "a": {"c": []}}`: "{'b': 1, 'a': {'c': []}}",
	} {
		if got := Pythonic([]byte(raw)); got != want {
			t.Errorf("%s is %s, want %s", raw, got, want)
		}
	}
}

func TestKeysInOrder(t *testing.T) {
	for raw, want := range map[string]string{
		`{"b": {"x": 1}, "a": [1, 2], "c": null}`: "b a c", `{}`: "", `[1]`: "", ``: "", `{"a": 1, "b"`: "a b",
	} {
		if got := strings.Join(KeysInOrder([]byte(raw)), " "); got != want {
			t.Errorf("the keys of %s are %q, want %q", raw, got, want)
		}
	}
}
