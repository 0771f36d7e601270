package providerspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

func TestMergeRefusesWhatIsTooDeep(t *testing.T) {
	deep := func(levels int, around string) []byte {
		return []byte(strings.Repeat(`{"[{":`, levels/2) + strings.Repeat("[", levels-levels/2) + around +
			strings.Repeat("]", levels-levels/2) + strings.Repeat("}", levels/2))
	}
	const texts = `"[[{{","\\","\"{",[]`
	if _, err := Merge(deep(maxNesting-1, texts)); err != nil {
		t.Errorf("%d levels: %v", maxNesting, err)
	}
	if _, err := Merge(nil, deep(maxNesting, texts)); err == nil || err.Error() != "layer 2: is nested more than 100 levels deep" {
		t.Errorf("%d levels: %v", maxNesting+1, err)
	}
	if Equal(deep(maxNesting+1, ""), deep(maxNesting+1, "")) {
		t.Error("what is no spec equals something")
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
		{`{}`, `[]`, false},
		{`[]`, ``, false},
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

// leaves returns what stands in a value beside objects and lists, by path, in the words in which it
// was written.
func leaves(at Path, value any, into map[string]string) map[string]string {
	switch v := value.(type) {
	case map[string]any:
		for key, element := range v {
			leaves(at.under(key), element, into)
		}
	case []any:
		for i, element := range v {
			leaves(at.under(i), element, into)
		}
	default:
		into[at.String()] = fmt.Sprintf("%T %v", v, v)
	}
	return into
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1}}`), []byte(`{"a":{"c":null}}`), []byte(`{"a":[1.0,{"d":1e400}]}`))
	f.Add([]byte(`{"a":{"secretKeyRef":{"name":"s","key":"k"}}}`), []byte(`{"a":{"value":{"b":9007199254740993}}}`), []byte(``))
	f.Add([]byte(`{"a":{"value":"\u00e9<&>\u2028"}}`), []byte(`{"a":{"b":-0}}`), []byte(`{"a":{"value":null}}`))
	f.Add([]byte(strings.Repeat(`{"a":[`, 60)+strings.Repeat(`]}`, 60)), []byte(`{"":{"":{}}}`), []byte(` `))
	f.Fuzz(func(t *testing.T, under, over, top []byte) {
		before := bytes.Clone(under)
		merged, err := Merge(under, over, top)
		if err != nil {
			if words := err.Error(); len(words) > 100 || !strings.HasPrefix(words, "layer ") {
				t.Errorf("refused with %q", words)
			}
			return
		}
		have, err := decode(merged)
		if err != nil || merged[0] != '{' {
			t.Fatalf("%q: %v", merged, err)
		}
		two, err := Merge(under, over)
		if err != nil {
			t.Fatal(err)
		}
		for what, same := range map[string][][]byte{
			"two and one": {two, top}, "the top again": {merged, top}, "nothing": {merged, nil, []byte("{}")}, "itself": {merged},
		} {
			if again, err := Merge(same...); err != nil || !bytes.Equal(again, merged) {
				t.Errorf("%s: %q is %q, %v", what, merged, again, err)
			}
		}
		if !bytes.Equal(before, under) {
			t.Errorf("the layer below was changed to %q", under)
		}
		checkLeaves(t, have, under, over, top)
	})
}

// checkLeaves wants each text and number of a result to be just as a layer says it, at the same
// place.
func checkLeaves(t *testing.T, have map[string]any, layers ...[]byte) {
	t.Helper()
	said := make([]map[string]string, 0, len(layers))
	for _, raw := range layers {
		layer, err := decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, leaves(nil, layer, map[string]string{}))
	}
	found := leaves(nil, have, map[string]string{})
	for path, is := range found {
		if !slices.ContainsFunc(said, func(layer map[string]string) bool { return layer[path] == is }) {
			t.Errorf("%s is %s, as no layer says", path, is)
		}
	}
	// What is on top counts, unless it is nothing.
	for path, is := range said[len(said)-1] {
		got, there := found[path]
		if is != "<nil> <nil>" && (!there || got != is) {
			t.Errorf("%s is %q, and the upper layer says %s", path, got, is)
		}
	}
}
