package providerspec

import (
	"encoding/json"
	"errors"
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
		{"no object", `[]`, Problems{{"", "is not a JSON object"}}},
		{"several", `{"a":{"value":"x","secretKeyRef":{"name":"s","key":"k"}}}`, Problems{{"a", "has several of value, secretKeyRef and configMapKeyRef: choose one"}}},
		{"no key", `{"a":[{"secretKeyRef":{"name":"s"}}]}`, Problems{{"a[0]", "secretKeyRef needs a name and a key"}}},
		{"no object in it", `{"a":{"configMapKeyRef":"s/k"}}`, Problems{{"a", "configMapKeyRef needs a name and a key"}}},
		{"more fields", `{"a":{"secretKeyRef":{"name":"s","key":"k","optional":true}}}`, Problems{{"a", "secretKeyRef.optional: must be one of name, key and namespace, and a string"}}},
		{"not a string", `{"a":{"secretKeyRef":{"name":"s","key":1}}}`, Problems{{"a", "secretKeyRef.key: must be one of name, key and namespace, and a string"}}},
		{
			"all at once, in order", `{"b":{"secretKeyRef":{}},"a":{"secretKeyRef":{}}}`,
			Problems{{"a", "secretKeyRef needs a name and a key"}, {"b", "secretKeyRef needs a name and a key"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Read([]byte(tc.spec))
			problems, _ := errors.AsType[Problems](err)
			if diff := cmp.Diff(tc.want, problems); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if got := (Problems{{"a", "is wrong"}, {"b", "too"}}).Error(); got != "a: is wrong; b: too" {
		t.Errorf("as an error: %s", got)
	}
}

func TestFillAndRefer(t *testing.T) {
	const written = `{"a":{"configMapKeyRef":{"name":"m","key":"k"}},"auth":[{"password":{"secretKeyRef":{"name":"s","key":"k","namespace":"n"}}}]}`
	s, err := Read([]byte(written))
	if err != nil {
		t.Fatal(err)
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

func TestPath(t *testing.T) {
	for want, path := range map[string]Path{
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
	}
}

func TestReadProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := marshal(t, object().Draw(t, "spec"))
		read, err := Read(raw)
		if err != nil {
			return
		}
		if _, err := Read(read.JSON()); err != nil {
			t.Fatalf("%s cannot be read again: %v", read.JSON(), err)
		}
		back, err := read.Refer(read.JSON())
		if err != nil {
			t.Fatal(err)
		}
		reread, err := Read(back)
		if err != nil || len(reread.References) != len(read.References) {
			t.Fatalf("%s became %s: %v", raw, back, err)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"a":{"secretKeyRef":{"name":"s","key":"k"}},"b":[{"value":"x"}]}`))
	f.Add([]byte(`{"":{"configMapKeyRef":{"name":"s","key":"k"}},"b":[{"value":{}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := Read(raw)
		if err != nil {
			return
		}
		back, err := s.Refer(s.JSON())
		if err != nil || !json.Valid(back) {
			t.Fatalf("%q written back is %q, %v", raw, back, err)
		}
		again, err := Read(back)
		if diff := cmp.Diff(s.References, again.References); err != nil || diff != "" {
			t.Errorf("%q: references changed, %v:\n%s", raw, err, diff)
		}
	})
}
