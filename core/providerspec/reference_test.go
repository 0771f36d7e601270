package providerspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAPI4_Read(t *testing.T) {
	for _, tc := range []struct {
		name, spec, want string
		references       []Reference
	}{
		{name: "plain", spec: `{"a":"b","c":[1,{"d":null}]}`, want: `{"a":"b","c":[1,{"d":null}]}`},
		{name: "nothing", spec: ``, want: `{}`},
		{name: "literals", spec: `{"a":{"value":"b"},"c":{"value":3},"d":[{"value":true}]}`, want: `{"a":"b","c":3,"d":[true]}`},
		{
			name: "references are cut out", spec: `{"u":"x","auth":{"password":{"secretKeyRef":{"name":"s","key":"k"}}}}`,
			want:       `{"auth":{},"u":"x"}`,
			references: []Reference{{Path: Path{"auth", "password"}, Kind: Secret, Name: "s", Key: "k"}},
		}, {
			name: "in lists others keep their places", spec: `{"l":["a",{"configMapKeyRef":{"name":"m","key":"k","namespace":"n"}},"c"]}`,
			want:       `{"l":["a",null,"c"]}`,
			references: []Reference{{Path: Path{"l", 1}, Kind: ConfigMap, Namespace: "n", Name: "m", Key: "k"}},
		}, {
			name: "a driver's own object of that name", spec: `{"tags":[{"key":"a","value":"b"}],"o":{"value":{"x":1}},"p":{"value":[1]}}`,
			want: `{"o":{"value":{"x":1}},"p":{"value":[1]},"tags":[{"key":"a","value":"b"}]}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Read([]byte(tc.spec))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got.JSON())) + cmp.Diff(tc.references, got.References); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReadNamesWhatIsWrong(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		want       Problems
	}{
		{"no object", `[]`, Problems{{Path: "", Description: "is not a JSON object"}}},
		{"several", `{"a":{"value":"x","secretKeyRef":{"name":"s","key":"k"}}}`, Problems{{Path: "a", Description: "has several of value, secretKeyRef and configMapKeyRef: choose one"}}},
		{"no key", `{"a":[{"secretKeyRef":{"name":"s"}}]}`, Problems{{Path: "a[0]", Description: "secretKeyRef needs a name and a key"}}},
		{"no object in it", `{"a":{"configMapKeyRef":"s/k"}}`, Problems{{Path: "a", Description: "configMapKeyRef needs a name and a key"}}},
		{"more fields", `{"a":{"secretKeyRef":{"name":"s","key":"k","optional":true}}}`, Problems{{Path: "a", Description: "secretKeyRef.optional: must be one of name, key and namespace, and a string"}}},
		{"not a string", `{"a":{"secretKeyRef":{"name":"s","key":1}}}`, Problems{{Path: "a", Description: "secretKeyRef.key: must be one of name, key and namespace, and a string"}}},
		{"a way to somewhere else", `{"a":{"secretKeyRef":{"name":"..","key":"k"}}}`, Problems{{Path: "a", Description: "secretKeyRef.name: must be of letters, digits, '-', '_' and '.', at most 253"}}},
		{"an odd key", `{"a":{"configMapKeyRef":{"name":"m","key":"a\nb"}}}`, Problems{{Path: "a", Description: "configMapKeyRef.key: must be of letters, digits, '-', '_' and '.', at most 253"}}},
		{"too long a name", `{"a":{"configMapKeyRef":{"name":"` + strings.Repeat("m", maxName+1) + `","key":"k"}}}`, Problems{{Path: "a", Description: "configMapKeyRef.name: must be of letters, digits, '-', '_' and '.', at most 253"}}},
		{"an object of ours beside another", `{"a":{"value":{"x":1},"secretKeyRef":{"name":"s","key":"k"}}}`, Problems{{Path: "a", Description: "has several of value, secretKeyRef and configMapKeyRef: choose one"}}},
		{"a literal in a literal", `{"a":[{"value":{"value":"x"}}]}`, Problems{{Path: "a[0]", Description: "value must not be a reference itself"}}},
		{"a reference in a literal", `{"a":{"value":{"secretKeyRef":{"name":"s","key":"k"}}}}`, Problems{{Path: "a", Description: "value must not be a reference itself"}}},
		{"fields with odd names", `{"a\nb":{"secretKeyRef":{"name":"s","key":"k","o\u202ed":1}}}`, Problems{{Path: "a b", Description: "secretKeyRef.o d: must be one of name, key and namespace, and a string"}}},
		{
			"all at once, in order", `{"b":{"secretKeyRef":{}},"a":{"secretKeyRef":{}}}`,
			Problems{{Path: "a", Description: "secretKeyRef needs a name and a key"}, {Path: "b", Description: "secretKeyRef needs a name and a key"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, problems := Read([]byte(tc.spec))
			if diff := cmp.Diff(tc.want, problems); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if got := (Problems{{Path: "a", Description: "is wrong"}, {Path: "b", Description: "too"}}).Error(); got != "a: is wrong; b: too" {
		t.Errorf("as an error: %s", got)
	}
}

func TestReadTellsTheFirstOfManyProblems(t *testing.T) {
	many := map[string]any{}
	for i := range 10 * maxProblems {
		many[fmt.Sprintf("k%03d", i)] = map[string]any{secretKey: "s"}
	}
	raw, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	_, problems := Read(raw)
	if len(problems) != maxProblems || problems[0].Path != "k000" || problems[maxProblems-1].Path != fmt.Sprintf("k%03d", maxProblems-1) {
		t.Errorf("%d problems: %v", len(problems), problems)
	}
}

func TestFillAndRefer(t *testing.T) {
	const written = `{"a":{"configMapKeyRef":{"name":"m","key":"k"}},"auth":[{"password":{"secretKeyRef":{"name":"s","key":"k","namespace":"n"}}}]}`
	s, wrong := Read([]byte(written))
	if wrong != nil {
		t.Fatal(wrong)
	}
	if same, err := s.Refer(s.JSON()); err != nil || !Equal(same, []byte(written)) {
		t.Errorf("written back: %s, %v", same, err)
	}
	filled := s.Fill(map[string]string{"a": "x", "unknown": "y"})
	if got := string(filled.JSON()); got != `{"a":"x","auth":[{}]}` || len(filled.References) != 1 {
		t.Errorf("filled: %s, %v", got, filled.References)
	}
	if got := string(s.JSON()); got != `{"auth":[{}]}` {
		t.Errorf("filling has changed the spec: %s", got)
	}
	const defaulted = `{"a":"x","auth":[{"user":"u"}],"zone":"z"}`
	got, err := filled.Refer([]byte(defaulted))
	const want = `{"a":"x","auth":[{"password":{"secretKeyRef":{"key":"k","name":"s","namespace":"n"}},"user":"u"}],"zone":"z"}`
	if err != nil || string(got) != want {
		t.Errorf("with defaults: %s, %v", got, err)
	}
	// A driver that has dropped what was empty does not lose the reference.
	got, err = filled.Refer([]byte(`{}`))
	if err != nil || string(got) != `{"auth":[{"password":{"secretKeyRef":{"key":"k","name":"s","namespace":"n"}}}]}` {
		t.Errorf("dropped: %s, %v", got, err)
	}
	if _, err := filled.Refer([]byte(`[]`)); err == nil {
		t.Error("a driver's list passes for a spec")
	}
}

// A reference without a value keeps none behind it from theirs.
func TestFillTakesEachValueThereIs(t *testing.T) {
	s := readSpec(t, `{"a":{"configMapKeyRef":{"name":"m","key":"a"}},"b":{"configMapKeyRef":{"name":"m","key":"b"}}}`)
	filled := s.Fill(map[string]string{"b": "x"})
	if got := string(filled.JSON()); got != `{"b":"x"}` || len(filled.References) != 1 {
		t.Errorf("filled: %s, %v", got, filled.References)
	}
}

func TestAnObjectNamedValueIsTheDriversOwn(t *testing.T) {
	const own = `{"f":{"value":{"a":1}},"g":{"value":{"b":2},"x":1}}`
	if s := readSpec(t, own); !Equal(s.JSON(), []byte(own)) {
		t.Errorf("%s is read as %s", own, s.JSON())
	}
	s := readSpec(t, `{"f":{"value":{"secretKeyRef":{"name":"s","key":"k"}},"x":1}}`)
	if len(s.References) != 1 || s.References[0].Path.String() != "f.value" {
		t.Errorf("a reference in an object that has more is read as %v", s.References)
	}
}

func TestPath(t *testing.T) {
	for want, path := range map[string]Path{
		`["a.b"].c[0]`:          {"a.b", "c", 0},
		"":                      nil,
		"auth.password":         {"auth", "password"},
		"networks[0].key":       {"networks", 0, "key"},
		"a[1][2]":               {"a", 1, 2},
		`labels["a.b/c"].d`:     {"labels", "a.b/c", "d"},
		`[""]["x[0]"]["\"q"].y`: {"", "x[0]", `"q`, "y"},
	} {
		if got := path.String(); got != want {
			t.Errorf("%#v is %s, want %s", path, got, want)
		}
		if got := path.Shown(); got != want {
			t.Errorf("%#v is shown as %s, want %s", path, got, want)
		}
	}
	whole := strings.Repeat("a", maxShown-len("…"))
	if got := (Path{whole}).Shown(); got != whole {
		t.Errorf("a path that fits is shown as %s", got)
	}
	for _, long := range []string{whole + "a", strings.Repeat("a", maxShown), strings.Repeat("ä\n", maxShown)} {
		if got := (Path{long}).Shown(); len(got) > maxShown || len(got) < maxShown-8 || strings.Contains(got, "\n") {
			t.Errorf("a long path is shown as %s", got)
		}
	}
}

func TestReadProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := marshal(t, object().Draw(t, "spec"))
		read, wrong := Read(raw)
		if wrong != nil {
			return
		}
		if _, err := Read(read.JSON()); err != nil {
			t.Fatalf("%s cannot be read again: %v", read.JSON(), err)
		}
		back, err := read.Refer(read.JSON())
		if err != nil {
			t.Fatal(err)
		}
		reread, wrong := Read(back)
		if wrong != nil || len(reread.References) != len(read.References) {
			t.Fatalf("%s became %s: %v", raw, back, wrong)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"a":{"secretKeyRef":{"name":"s","key":"k"}},"b":[{"value":"x"}]}`))
	f.Add([]byte(`{"":{"configMapKeyRef":{"name":"s","key":"k"}},"b":[{"value":{}}]}`))
	f.Add([]byte(`{"a":{"value":{"value":"x"}},"b":[1.50,{"c\u202e":{"secretKeyRef":{"name":"../x","key":"k"}}}]}`))
	f.Add([]byte(`{"a":{"b":{"name":"value","value":{"configMapKeyRef":{"name":"m","key":"k"}}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, wrong := Read(raw)
		if wrong != nil {
			checkProblems(t, wrong)
			return
		}
		back, err := s.Refer(s.JSON())
		if err != nil || !json.Valid(back) {
			t.Fatalf("%q written back is %q, %v", raw, back, err)
		}
		again, wrong := Read(back)
		if diff := cmp.Diff(s.References, again.References); wrong != nil || diff != "" {
			t.Errorf("%q: references changed, %v:\n%s", raw, wrong, diff)
		}
		if !bytes.Equal(again.JSON(), s.JSON()) {
			t.Errorf("%q is %q, and read again %q", raw, s.JSON(), again.JSON())
		}
		checkFilled(t, s)
	})
}

// checkProblems wants to be told in few words where something is wrong.
func checkProblems(t *testing.T, problems Problems) {
	t.Helper()
	if len(problems) == 0 || len(problems) > maxProblems {
		t.Fatalf("%d problems: %v", len(problems), problems)
	}
	for _, problem := range problems {
		if problem.Path == "" && problem.Description != errNoObject.Error() && problem.Description != errNested.Error() {
			t.Errorf("nobody knows where: %v", problem)
		}
		if len(problem.Path) > maxShown || len(problem.Description) > 2*maxShown || strings.ContainsAny(problem.Path+problem.Description, "\n\x00") {
			t.Errorf("the problem is not fit for people: %q", problem)
		}
	}
}

// checkFilled puts a text in the place of each reference: nothing else changes, and it changes
// nothing of the spec it was made from.
func checkFilled(t *testing.T, s Spec) {
	t.Helper()
	values, before := map[string]string{}, s.JSON()
	for _, ref := range s.References {
		values[ref.Path.String()] = "filled in " + ref.Path.String()
	}
	filled := s.Fill(values)
	if len(filled.References) > 0 || !bytes.Equal(before, s.JSON()) {
		t.Errorf("%d references are left, and %q became %q", len(filled.References), before, s.JSON())
	}
	have, err := decode(filled.JSON())
	if err != nil {
		t.Fatal(err)
	}
	want, err := decode(before)
	if err != nil {
		t.Fatal(err)
	}
	found, plain := leaves(nil, have, map[string]string{}), leaves(nil, want, map[string]string{})
	for path, value := range values {
		plain[path] = "string " + value
	}
	if diff := cmp.Diff(plain, found); diff != "" {
		t.Errorf("filling in changed more:\n%s", diff)
	}
}
