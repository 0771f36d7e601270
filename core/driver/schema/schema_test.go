package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/core/providerspec"
)

// cloudSchema has what schemas have: references, alternatives, lists, patterns, and secrets in all
// of them.
const cloudSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "required": ["flavor", "password"],
  "additionalProperties": false,
  "properties": {
    "flavor": {"type": "string", "minLength": 1, "enum": ["small", "large"]},
    "password": {"type": "string", "minLength": 8, "writeOnly": true},
    "authURL": {"type": "string", "format": "uri"},
    "auth": {"$ref": "#/$defs/auth"},
    "networks": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "key": {"type": "string", "writeOnly": true}}}},
    "pair": {"prefixItems": [{"type": "string"}, {"type": "string", "writeOnly": true}]},
    "login": {"oneOf": [{"required": ["token"]}, {"required": ["user"]}], "properties": {"token": {"type": "string"}, "user": {"type": "string"}}},
    "labels": {"type": "object", "patternProperties": {"^secret-": {"writeOnly": true}}, "additionalProperties": {"type": "string"}},
    "count": {"type": "integer"}
  },
  "$defs": {
    "auth": {
      "type": "object", "required": ["token"], "unevaluatedProperties": false,
      "allOf": [{"properties": {"token": {"type": "string", "writeOnly": true}, "next": {"$ref": "#/$defs/auth"}}}]
    }
  }
}`

func compiled(t *testing.T) *Schema {
	t.Helper()
	s, err := Compile([]byte(cloudSchema))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAPI4_WriteOnly(t *testing.T) {
	s := compiled(t)
	for _, tc := range []struct {
		path providerspec.Path
		want bool
		why  string
	}{
		{providerspec.Path{"password"}, true, "it says so"},
		{providerspec.Path{"password", "x"}, true, "what lies in a secret is one"},
		{providerspec.Path{"flavor"}, false, "it does not say so"},
		{providerspec.Path{"auth", "token"}, true, "behind a reference and allOf"},
		{providerspec.Path{"auth", "next", "next", "token"}, true, "schemas may be recursive"},
		{providerspec.Path{"auth"}, false, "what holds a secret is none"},
		{providerspec.Path{"networks", 3, "key"}, true, "in any element"},
		{providerspec.Path{"networks", 3, "name"}, false, "beside a secret"},
		{providerspec.Path{"pair", 0}, false, "the first of a tuple"},
		{providerspec.Path{"pair", 1}, true, "the second"},
		{providerspec.Path{"labels", "secret-a"}, true, "by pattern"},
		{providerspec.Path{"labels", "a"}, false, "not by another pattern"},
		{providerspec.Path{"unknown"}, false, "there is no such field"},
	} {
		if got := s.WriteOnly(tc.path); got != tc.want {
			t.Errorf("%s: %t, although %s", tc.path, got, tc.why)
		}
	}
}

func TestAPI4_Endpoints(t *testing.T) {
	s := compiled(t)
	want := []Endpoint{{Path: providerspec.Path{"authURL"}, Value: "https://a/b"}}
	got := s.Endpoints([]byte(`{"authURL":"https://a/b","flavor":"https://c","networks":[{"name":"https://d"}]}`))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, without := range []string{`{`, `{"authURL":"","flavor":"small"}`} {
		if got := s.Endpoints([]byte(without)); got != nil {
			t.Errorf("%s has %v", without, got)
		}
	}
}

func TestAPI9_Check(t *testing.T) {
	s := compiled(t)
	type problems = providerspec.Problems
	for _, tc := range []struct {
		name, spec string
		scope      Scope
		want       problems
	}{
		{name: "good", spec: `{"flavor":"small","password":"long enough"}`},
		{name: "a secret may be elsewhere", spec: `{"flavor":"small"}`},
		{name: "all that is wrong, in order", spec: `{"count":"x","colour":"red"}`, want: problems{
			{Path: "colour", Description: "is not a field"}, {Path: "count", Description: "got string, want integer"}, {Path: "flavor", Description: "is required"},
		}},
		{name: "what is missing in a part is not wrong", spec: `{"authURL":"https://a"}`, scope: Scope{Partial: true}},
		{name: "what is unknown in a part is", spec: `{"colour":"red"}`, scope: Scope{Partial: true}, want: problems{{Path: "colour", Description: "is not a field"}}},
		{name: "a secret's value is not shown", spec: `{"flavor":"small","password":"short"}`, want: problems{{Path: "password", Description: hidden}}},
		{name: "nor is it where it is one of many", spec: `{"flavor":"small","auth":{"token":"x","mine":"y"}}`, want: problems{{Path: "auth.mine", Description: "is not a field"}}},
		{name: "an alternative", spec: `{"flavor":"small","login":{"user":"u"}}`},
		{name: "no alternative", spec: `{"flavor":"small","login":{}}`, want: problems{{Path: "login.token", Description: "is required"}, {Path: "login.user", Description: "is required"}}},
		{name: "elements by their index", spec: `{"flavor":"small","networks":[{"name":"a"},{"name":1}]}`, want: problems{{Path: "networks[1].name", Description: "got number, want string"}}},
		{name: "a number that nobody can count to", spec: `{"flavor":"small","labels":{"b":1e1001,"a":[1e1000,1e-1000001]}}`, want: problems{{Path: "labels.a[1]", Description: "is a number out of all bounds"}}},
		{name: "no JSON", spec: `{`, want: problems{{Path: "", Description: "is not JSON"}}},
		{
			name: "withheld fields are there", spec: `{"flavor":"small","login":{}}`,
			scope: Scope{Withheld: []providerspec.Path{{"login", "token"}, {"password"}}},
		}, {
			name: "withheld elements are there", spec: `{"flavor":"small","pair":["a",null]}`,
			scope: Scope{Withheld: []providerspec.Path{{"pair", 1}}},
		}, {
			name: "a format", spec: `{"flavor":"small","authURL":"not one"}`,
			want: problems{{Path: "authURL", Description: "'not one' is not valid uri: relative url"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, s.Check([]byte(tc.spec), tc.scope)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSecretsStayHidden(t *testing.T) {
	const canary = "canary-5f1c"
	s, err := Compile([]byte(`{
	  "properties": {
	    "s": {"type": "integer", "writeOnly": true, "enum": [1]},
	    "deep": {"writeOnly": true, "properties": {"x": {"pattern": "^a$"}, "y": {"const": 1}}},
	    "holder": {"enum": [1], "properties": {"key": {"writeOnly": true}}},
	    "holders": {"const": 1, "items": {"properties": {"key": {"writeOnly": true}}}}
	  }
	}`))
	if err != nil {
		t.Fatal(err)
	}
	spec := strings.ReplaceAll(`{"s":"C","deep":{"x":"C","y":"C"},"holder":{"key":"C"},"holders":[{"key":"C"}]}`, "C", canary)
	found := s.Check([]byte(spec), Scope{})
	if len(found) != 5 {
		t.Errorf("found %v", found)
	}
	if strings.Contains(found.Error(), canary) {
		t.Errorf("a secret is shown: %v", found)
	}
}

func TestCompileRefuses(t *testing.T) {
	for name, raw := range map[string]string{
		"no JSON":            `{`,
		"no schema":          `{"type": 3}`,
		"a file":             `{"$ref": "file:///etc/passwd"}`,
		"a URL":              `{"$ref": "https://example.com/schema"}`,
		"a reference astray": `{"$ref": "#/$defs/none"}`,
		"a bad pattern":      `{"pattern": "("}`,
		"a bound without":    `{"properties":{"a":[{"minimum": 1e1000001}]}}`,
		"a length without":   `{"minLength": 1E-9999999999999999999}`,
		"a divisor without":  `{"multipleOf": 1e1000001}`,
	} {
		if _, err := Compile([]byte(raw)); err == nil {
			t.Errorf("%s passes", name)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"flavor":"small","networks":[{"name":1}]}`))
	s, err := Compile([]byte(cloudSchema))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, spec []byte) {
		found := s.Check(spec, Scope{Withheld: []providerspec.Path{{"a", 0, "b"}}})
		if len(found) == 0 && len(s.Endpoints(spec)) > 1 {
			t.Errorf("%s has two addresses and is right", spec)
		}
	})
}

// FuzzCompile reads any schema, and checks any spec by it.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(cloudSchema), []byte(`{"flavor":"small","networks":[{"name":1}]}`))
	f.Add([]byte(`{"minimum":1e1000001}`), []byte(`1e1000001`))
	f.Add([]byte(`{"properties":{"a":{"minimum":1,"multipleOf":0.01,"uniqueItems":true}}}`), []byte(`{"a":1e1000001}`))
	f.Add([]byte(`{"$ref":"#"}`), []byte(`{}`))
	f.Add([]byte(`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"properties":{"b":{"$ref":"#"}},"unevaluatedProperties":false}}}`), []byte(`{"b":{"b":{"c":1}}}`))
	f.Add([]byte(`{"contentEncoding":"base64","contentMediaType":"application/json","format":"uri","writeOnly":true}`), []byte(`"e30="`))
	f.Fuzz(func(t *testing.T, raw, spec []byte) {
		s, err := Compile(raw)
		if err != nil {
			return
		}
		found := s.Check(spec, Scope{Withheld: []providerspec.Path{{"a", 0, "b"}, {"key"}}})
		if diff := cmp.Diff(found, s.Check(spec, Scope{Withheld: []providerspec.Path{{"a", 0, "b"}, {"key"}}})); diff != "" {
			t.Errorf("the same spec is wrong in another way:\n%s", diff)
		}
		for _, endpoint := range s.Endpoints(spec) {
			if !s.IsEndpoint(endpoint.Path) {
				t.Errorf("%s is no address", endpoint.Path)
			}
		}
	})
}
