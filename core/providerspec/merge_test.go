package providerspec

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestAPI6_Merge(t *testing.T) {
	for _, tc := range []struct {
		name   string
		layers []string
		want   string
	}{
		{"nothing", nil, `{}`},
		{"empty layers change nothing", []string{"", `{"a":1}`, "", " "}, `{"a":1}`},
		{"one layer is itself, null included", []string{`{"b":null,"a":[1,null]}`}, `{"a":[1,null],"b":null}`},
		{"the upper layer wins", []string{`{"a":1,"b":2}`, `{"b":3,"c":4}`}, `{"a":1,"b":3,"c":4}`},
		{"objects are merged at any depth", []string{`{"a":{"b":{"c":1,"d":2}}}`, `{"a":{"b":{"d":3}}}`}, `{"a":{"b":{"c":1,"d":3}}}`},
		{"lists are replaced", []string{`{"a":[1,2]}`, `{"a":[3]}`}, `{"a":[3]}`},
		{"an empty list is a list", []string{`{"a":[1]}`, `{"a":[]}`}, `{"a":[]}`},
		{"an object replaces what is none", []string{`{"a":1}`, `{"a":{"b":2}}`}, `{"a":{"b":2}}`},
		{"and the other way round", []string{`{"a":{"b":2}}`, `{"a":1}`}, `{"a":1}`},
		{"null takes away", []string{`{"a":1,"b":{"c":2,"d":3}}`, `{"a":null,"b":{"c":null}}`}, `{"b":{"d":3}}`},
		{"null over nothing is nothing", []string{`{}`, `{"a":null,"b":{"c":null}}`}, `{"b":{}}`},
		{"three layers", []string{`{"a":1,"b":1,"c":1}`, `{"b":2,"c":2}`, `{"c":3}`}, `{"a":1,"b":2,"c":3}`},
		{
			"a reference is replaced as a whole",
			[]string{`{"p":{"secretKeyRef":{"name":"a","key":"b","namespace":"c"}}}`, `{"p":{"secretKeyRef":{"name":"d","key":"e"}}}`},
			`{"p":{"secretKeyRef":{"key":"e","name":"d"}}}`,
		},
		{"so is one by a literal", []string{`{"p":{"secretKeyRef":{"name":"a","key":"b"}}}`, `{"p":{"value":"x"}}`}, `{"p":{"value":"x"}}`},
		{"so is one by an object", []string{`{"p":{"value":"x"}}`, `{"p":{"q":1}}`}, `{"p":{"q":1}}`},
		{"numbers stay as they were written", []string{`{"a":9007199254740993,"b":1.0}`, `{"c":1e400}`}, `{"a":9007199254740993,"b":1.0,"c":1e400}`},
		{"so do signs that HTML minds", []string{`{"a":"<&>"}`}, `{"a":"<&>"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			layers := make([][]byte, 0, len(tc.layers))
			for _, layer := range tc.layers {
				layers = append(layers, []byte(layer))
			}
			got, err := Merge(layers...)
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s, %v; want %s", got, err, tc.want)
			}
		})
	}
}

func TestMergeRefusesWhatIsNoObject(t *testing.T) {
	for _, layer := range []string{"[]", `"a"`, "null", "{", `{} {}`, "1"} {
		if got, err := Merge([]byte(`{"a":1}`), []byte(layer)); err == nil || err.Error() != "layer 2: is not a JSON object" {
			t.Errorf("%s: got %s, %v", layer, got, err)
		}
	}
}

func TestEqual(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[{"c":2}]}`, ` {"b": [ {"c":2} ], "a":1}`, true},
		{`{}`, ``, true},
		{`{"a":null}`, `{}`, false},
		{`{"zone":"a"}`, `{"region":"a"}`, false},
		{`{"a":1}`, `{"a":1.0}`, false},
		{`[]`, `[]`, false},
	} {
		if got := Equal([]byte(tc.a), []byte(tc.b)); got != tc.want {
			t.Errorf("Equal(%s, %s) = %t", tc.a, tc.b, got)
		}
	}
}

// object generates JSON objects of few keys, so that layers meet.
func object() *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", literalKey}), value(3), 0, 4)
}

func value(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any](true), rapid.Map(rapid.Int(), func(n int) any { return n }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
	)
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(scalar,
		rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", literalKey}), value(depth-1), 0, 3), func(m map[string]any) any { return m }),
	)
}

func marshal(t *rapid.T, value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestMergeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		under, over := marshal(t, object().Draw(t, "under")), marshal(t, object().Draw(t, "over"))
		before := bytes.Clone(under)
		merged, err := Merge(under, over)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Merge(merged, over)
		if err != nil || !bytes.Equal(merged, again) {
			t.Fatalf("the same layer again changes %s to %s, %v", merged, again, err)
		}
		if nothing, err := Merge(merged, nil, []byte("{}")); err != nil || !bytes.Equal(merged, nothing) {
			t.Fatalf("nothing changes %s to %s, %v", merged, nothing, err)
		}
		if !bytes.Equal(under, before) {
			t.Fatalf("the layer below was changed")
		}
		// What the upper layer sets, and is no object, stands in the result.
		top, _ := decode(over)
		have, _ := decode(merged)
		for key, want := range top {
			if _, is := want.(map[string]any); is {
				continue
			}
			if got, there := have[key]; there != (want != nil) || there && !Equal(encode(map[string]any{"": got}), encode(map[string]any{"": want})) {
				t.Fatalf("%s: is %v, the upper layer says %v", key, got, want)
			}
		}
	})
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1}}`), []byte(`{"a":{"c":null}}`))
	f.Fuzz(func(t *testing.T, under, over []byte) {
		merged, err := Merge(under, over)
		if err == nil && !json.Valid(merged) {
			t.Errorf("%q over %q is %q", over, under, merged)
		}
	})
}
