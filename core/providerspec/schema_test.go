package providerspec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func readSpec(t *testing.T, raw string) Spec {
	t.Helper()
	s, wrong := Read([]byte(raw))
	if wrong != nil {
		t.Fatal(wrong)
	}
	return s
}

// withheld are references that stand at paths.
func withheld(paths ...Path) []Reference {
	var all []Reference
	for _, path := range paths {
		all = append(all, Reference{Path: path})
	}
	return all
}

func TestAPI4_WriteOnly(t *testing.T) {
	s := compiled(t)
	for _, tc := range []struct {
		path Path
		want bool
		why  string
	}{
		{Path{"password"}, true, "it says so"},
		{Path{"password", "x"}, true, "what lies in a secret is one"},
		{Path{"flavor"}, false, "it does not say so"},
		{Path{"auth", "token"}, true, "behind a reference and allOf"},
		{Path{"auth", "next", "next", "token"}, true, "schemas may be recursive"},
		{Path{"auth"}, false, "what holds a secret is none"},
		{Path{"networks", 3, "key"}, true, "in any element"},
		{Path{"networks", 3, "name"}, false, "beside a secret"},
		{Path{"pair", 0}, false, "the first of a tuple"},
		{Path{"pair", 1}, true, "the second"},
		{Path{"labels", "secret-a"}, true, "by pattern"},
		{Path{"labels", "a"}, false, "not by another pattern"},
		{Path{"unknown"}, false, "there is no such field"},
	} {
		if got := s.WriteOnly(tc.path); got != tc.want {
			t.Errorf("%s: %t, although %s", tc.path, got, tc.why)
		}
	}
}

func TestAPI4_Endpoints(t *testing.T) {
	s := compiled(t)
	want := []Endpoint{{Path: Path{"authURL"}, Value: "https://a/b"}}
	got := s.Endpoints(readSpec(t, `{"authURL":"https://a/b","flavor":"https://c","networks":[{"name":"https://d"}]}`))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := s.Endpoints(readSpec(t, `{"AuthURL":"https://a/b"}`)); len(got) != 1 {
		t.Errorf("a name in another case leads to %v", got)
	}
	if got := s.Endpoints(readSpec(t, `{"authURL":"","flavor":"small"}`)); got != nil {
		t.Errorf("an empty text is the address %v", got)
	}
}

func TestAPI9_Check(t *testing.T) {
	s := compiled(t)
	type problems = Problems
	for _, tc := range []struct {
		name, spec string
		partial    bool
		withheld   []Reference
		want       problems
	}{
		{name: "good", spec: `{"flavor":"small","password":"long enough"}`},
		{name: "a secret may be elsewhere", spec: `{"flavor":"small"}`},
		{name: "all that is wrong, in order", spec: `{"count":"x","colour":"red"}`, want: problems{
			{Path: "colour", Description: "is not a field"}, {Path: "count", Description: "got string, want integer"}, {Path: "flavor", Description: "is required"},
		}},
		{name: "what is missing in a part is not wrong", spec: `{"authURL":"https://a"}`, partial: true},
		{name: "what is unknown in a part is", spec: `{"colour":"red"}`, partial: true, want: problems{{Path: "colour", Description: "is not a field"}}},
		{name: "a secret's value is not shown", spec: `{"flavor":"small","password":"short"}`, want: problems{{Path: "password", Description: hidden}}},
		{name: "nor is it where it is one of many", spec: `{"flavor":"small","auth":{"token":"x","mine":"y"}}`, want: problems{{Path: "auth.mine", Description: "is not a field"}}},
		{name: "an alternative", spec: `{"flavor":"small","login":{"user":"u"}}`},
		{name: "no alternative", spec: `{"flavor":"small","login":{}}`, want: problems{{Path: "login.token", Description: "is required"}, {Path: "login.user", Description: "is required"}}},
		{name: "elements by their index", spec: `{"flavor":"small","networks":[{"name":"a"},{"name":1}]}`, want: problems{{Path: "networks[1].name", Description: "got number, want string"}}},
		{name: "a number that nobody can count to", spec: `{"flavor":"small","labels":{"b":1e1001,"a":[1e1000,1e-1000001]}}`, want: problems{{Path: "labels.a[1]", Description: "is a number out of all bounds"}}},
		{name: "no JSON", spec: `{`, want: problems{{Path: "", Description: "is not a JSON object"}}},
		{
			name: "withheld fields are there", spec: `{"flavor":"small","login":{}}`,
			withheld: withheld(Path{"login", "token"}, Path{"password"}),
		}, {
			name: "withheld elements are there", spec: `{"flavor":"small","pair":["a",null]}`,
			withheld: withheld(Path{"pair", 1}),
		}, {
			name: "a format", spec: `{"flavor":"small","authURL":"not one"}`,
			want: problems{{Path: "authURL", Description: "'not one' is not valid uri: relative url"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check := s.Check
			if tc.partial {
				check = s.CheckPart
			}
			if diff := cmp.Diff(tc.want, check([]byte(tc.spec), tc.withheld)); diff != "" {
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
	found := s.Check([]byte(spec), nil)
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

// A schema may be of an older draft, whose lists are written otherwise, and may depend on fields.
func TestWriteOnlyInOtherForms(t *testing.T) {
	for name, tc := range map[string]struct {
		raw  string
		path Path
		want bool
	}{
		"any element of an older list":     {`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"writeOnly":true}}`, Path{3}, true},
		"the second of an older tuple":     {`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{},{"writeOnly":true}]}`, Path{1}, true},
		"none after an older tuple's end":  {`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"writeOnly":true}]}`, Path{1}, false},
		"no element of what is no list":    {`{"properties":{"a":{"writeOnly":true}}}`, Path{0}, false},
		"a field that comes with another":  {`{"dependentSchemas":{"a":{"properties":{"b":{"writeOnly":true}}}}}`, Path{"b"}, true},
		"a field that nothing else names":  {`{"properties":{"a":{}},"unevaluatedProperties":{"writeOnly":true}}`, Path{"b"}, true},
		"one that something else names":    {`{"properties":{"a":{}},"unevaluatedProperties":{"writeOnly":true}}`, Path{"a"}, false},
		"whose case is that of another":    {`{"properties":{"Key":{"writeOnly":true}}}`, Path{"key"}, false},
		"in the alternative that may hold": {`{"if":{"required":["a"]},"then":{"properties":{"b":{"writeOnly":true}}}}`, Path{"b"}, true},
	} {
		s, err := Compile([]byte(tc.raw))
		if err != nil {
			t.Fatal(name, err)
		}
		if got := s.WriteOnly(tc.path); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAbsentSchemaFindsNothing(t *testing.T) {
	s := NoSchema("there is none")
	if s.Absent() != "there is none" || compiled(t).Absent() != "" {
		t.Errorf("says %q", s.Absent())
	}
	if found := s.Check([]byte(`{`), nil); found != nil {
		t.Errorf("found %v", found)
	}
	if s.WriteOnly(Path{"a"}) || s.Endpoints(readSpec(t, `{"url":"https://a"}`)) != nil {
		t.Error("knows fields")
	}
}

// A field that is no field of any kind is told, too.
func TestCheckByAFalseSchema(t *testing.T) {
	s, err := Compile([]byte(`{"properties":{"a":false}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Problems{{Path: "a", Description: "is not a field"}}
	if diff := cmp.Diff(want, s.Check([]byte(`{"a":1}`), nil)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An alternative that lacks nothing but a secret holds: the secret may come from elsewhere.
func TestCheckTakesAnAlternativeThatLacksASecret(t *testing.T) {
	s, err := Compile([]byte(`{"properties":{"key":{"writeOnly":true}},"anyOf":[{"required":["file"]},{"required":["key"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if found := s.Check([]byte(`{}`), nil); found != nil {
		t.Errorf("found %v", found)
	}
}

// A location that leads beyond the spec ends where the spec does.
func TestFindEndsWithTheSpec(t *testing.T) {
	c := checker{value: map[string]any{"list": []any{"x"}}}
	for _, beyond := range []string{"1", "-1", "one"} {
		if at, _ := c.find([]string{"list", beyond, "more"}); at.String() != "list" {
			t.Errorf("%s leads to %s", beyond, at)
		}
	}
	if at, value := c.find([]string{"list", "0", "more"}); at.String() != "list[0]" || value != "x" {
		t.Errorf("leads to %s, %v", at, value)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"flavor":"small","networks":[{"name":1}]}`))
	s, err := Compile([]byte(cloudSchema))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, spec []byte) {
		found := s.Check(spec, withheld(Path{"a", 0, "b"}))
		read, _ := Read(spec)
		if len(found) == 0 && len(s.Endpoints(read)) > 1 {
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
		found := s.Check(spec, withheld(Path{"a", 0, "b"}, Path{"key"}))
		if diff := cmp.Diff(found, s.Check(spec, withheld(Path{"a", 0, "b"}, Path{"key"}))); diff != "" {
			t.Errorf("the same spec is wrong in another way:\n%s", diff)
		}
		read, _ := Read(spec)
		for _, endpoint := range s.Endpoints(read) {
			if !s.IsEndpoint(endpoint.Path) {
				t.Errorf("%s is no address", endpoint.Path)
			}
		}
	})
}

func TestNumbersAreBoundedByTheirExponent(t *testing.T) {
	for number, want := range map[json.Number]bool{
		"7": false, "1e1000": false, "1E-1000": false, "1e1001": true, "1e-1001": true, "1e99999999999999999999": true,
	} {
		if _, got := excess(nil, number); got != want {
			t.Errorf("%s is out of bounds: %t, want %t", number, got, want)
		}
	}
}

// What is put in the place of a reference breaks rules that the referred to value may keep; what is
// wrong beside it is told.
func TestCheckSaysNothingOfWhatIsWithheld(t *testing.T) {
	found := compiled(t).Check([]byte(`{"flavor":"huge"}`), withheld(Path{"password"}))
	if len(found) != 1 || found[0].Path != "flavor" {
		t.Errorf("found %v", found)
	}
}

func TestASecretInAnObjectHidesWhatIsSaidOfTheObject(t *testing.T) {
	s, err := Compile([]byte(`{"properties":{"logins":{"const":{},"properties":{"a":{"writeOnly":true},"b":{},"c":{}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{`{"logins":{"a":"x"}}`, `{"logins":{"a":"x","b":"y"}}`, `{"logins":{"a":"x","b":"y","c":"z"}}`} {
		if found := s.Check([]byte(spec), nil); len(found) != 1 || found[0].Description != hidden {
			t.Errorf("of %s is said %v", spec, found)
		}
	}
}

func TestOtherPropertiesAreThoseThatNothingNames(t *testing.T) {
	s, err := Compile([]byte(`{"properties":{"a":{}},"patternProperties":{"^b":{}},"additionalProperties":{"writeOnly":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"a": false, "bc": false, "c": true} {
		if got := s.WriteOnly(Path{key}); got != want {
			t.Errorf("%s is secret: %t, want %t", key, got, want)
		}
	}
}
