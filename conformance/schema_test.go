package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What users name themselves, such as labels, are no unknown fields.
func TestSchemas(t *testing.T) {
	const labels = `"labels": {"type": "object", "additionalProperties": {"type": "string"}}`
	object := func(properties, more string) string {
		return `{"type": "object", "additionalProperties": false, "properties": {` + properties + `}` + more + `}`
	}
	auth := func(password, more string) string { return `"auth": ` + object(`"password": `+password, more) }
	for name, tc := range map[string]struct {
		spec, schema string
		// breach is a part of what is found; empty: nothing is.
		breach string
	}{
		"a map of texts":          {`{"labels": {"a": "b"}}`, object(labels, ""), ""},
		"a map in a list":         {`{"disks": [{"labels": {}}]}`, object(`"disks": {"type": "array", "items": `+object(labels, "")+`}`, ""), ""},
		"keys by a pattern":       {`{"labels": {"a": "b"}}`, object(`"labels": {"type": "object", "patternProperties": {".": {"type": "string"}}}`, ""), ""},
		"keys of nothing else":    {`{"labels": {"a": "b"}}`, object(`"labels": {"type": "object", "unevaluatedProperties": {"type": "string"}}`, ""), ""},
		"a secret among them":     {`{"auth": {}}`, object(`"auth": {"type": "object", "unevaluatedProperties": {"type": "string"}}`, ""), "auth.password may come from a Secret"},
		"a closed object":         {`{}`, `{"type": "object", "unevaluatedProperties": false}`, ""},
		"an open object":          {`{"labels": {"a": "b"}}`, object(`"labels": {"type": "object"}`, ""), `object "labels"`},
		"a spec of any keys":      {`{"a": "b"}`, `{"type": "object", "additionalProperties": {"type": "string"}}`, `object ""`},
		"a secret":                {`{"auth": {}}`, object(auth(`{"type": "string", "writeOnly": true}`, ""), ""), ""},
		"one in a secret object":  {`{}`, object(`"auth": {"type": "object", "writeOnly": true, "additionalProperties": false, "properties": {"password": {}}}`, ""), ""},
		"a secret that shows":     {`{"auth": {}}`, object(auth(`{"type": "string"}`, ""), ""), "auth.password may come from a Secret"},
		"a secret that is needed": {`{"auth": {}}`, object(auth(`{"type": "string", "writeOnly": true}`, `, "required": ["password"]`), ""), ""},
		"a field that is needed":  {`{}`, object(`"size": {"type": "string"}`, `, "required": ["size"]`), "refuses the spec"},
	} {
		t.Run(name, func(t *testing.T) {
			tried := newTrial(&session{target: &target{}, config: Config{ProviderSpec: []byte(tc.spec)}, secrets: map[string][]byte{"auth.password": nil, "of a whole Secret": nil}})
			inGoroutine(func() { checkSchema(tried, []byte(tc.schema)) })
			if tc.breach == "" && len(tried.breaches) == 0 {
				return
			}
			if tc.breach == "" || !slices.ContainsFunc(tried.breaches, func(breach string) bool { return strings.Contains(breach, tc.breach) }) {
				t.Errorf("found %q, want %q", tried.breaches, tc.breach)
			}
		})
	}
}

func TestNamesOfSecretsArePaths(t *testing.T) {
	for name, want := range map[string][]string{
		"password": {"password"}, "auth.password": {"auth", "password"}, "networks[0].key": {"networks", "0", "key"},
		`labels["a.b"]`: {"labels", "a.b"}, `labels["a\"]"].c`: {"labels", `a"]`, "c"},
		"": nil, "a..b": nil, "a.": nil, "a[b]": nil, "a[0]b": nil, `a"b`: nil,
	} {
		got, is := pathOf(name)
		if diff := cmp.Diff(want, got); diff != "" || is != (want != nil) {
			t.Errorf("%s is a path: %t (-want +got):\n%s", name, is, diff)
		}
	}
}
