package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	texttemplate "text/template"

	"pgregory.net/rapid"
)

// Values of each type that templates may meet, by the expressions that have them.
var expressions = map[string][]string{
	"text":   {`.x`, `$.x`, `.none`, `.labels.a`, `.map.text`, `.map.inner.a`, `"text"`, "`1.2`", `""`, `(.x)`, `(.map).text`, `$a`},
	"number": {`.n`, `.zero`, `.float`, `.json`, `1`, `-3`, `0x1e`, `-0x1e`, `2.0`, `1.5`, `1e1`, `0x1p2`, `'a'`, `2i`, `1_0`, `18446744073709551615`, `$b`},
	"truth":  {`.on`, `.off`, `true`, `false`},
	"list":   {`.list`, `.empty`, `.unset`, `.any`, `.map.list`, `$c`, `(index .any 1)`},
	"map":    {`.`, `$`, `.labels`, `.map`, `.map.inner`, `.unsetMap`, `(index .any 0)`},
	"other":  {`.`, `nil`, `.nil`, `.missing`, `.labels.missing`, `.map.nil`, `$d`, `.x.y`, `(.x).y`, `join`, `(.missing).x`, `(nil)`, `.map.nil.x`, `$a.b`, `$c.a`, `.x 1`},
}

// Functions with the types of what they take, and of what they return.
var signatures = map[string]struct {
	takes   []string
	returns string
}{
	"default": {[]string{"any", "any"}, "text"}, "join": {[]string{"text", "list"}, "text"}, "indent": {[]string{"number", "text"}, "text"},
	"b64enc": {[]string{"text"}, "text"}, "semverCompare": {[]string{"version", "version"}, "truth"},
	"and": {[]string{"any", "any"}, "text"}, "or": {[]string{"any", "any", "any"}, "text"}, "not": {[]string{"any"}, "truth"},
	"eq": {[]string{"same", "same", "same"}, "truth"}, "ne": {[]string{"same", "same"}, "truth"}, "lt": {[]string{"same", "same"}, "truth"},
	"le": {[]string{"same", "same"}, "truth"}, "gt": {[]string{"same", "same"}, "truth"}, "ge": {[]string{"same", "same"}, "truth"},
	"len": {[]string{"list"}, "number"}, "index": {[]string{"map", "text"}, "text"},
}

var versions = []string{`"1.36"`, `">=1.2"`, `"!=1.36"`, `.x`, "`1.2`", `.version`}

// drawn writes templates. Most of what it draws has the type that is wanted; the rest has any.
type drawn struct {
	*rapid.T
	// inRange allows break and continue.
	inRange bool
}

func (d drawn) pick(from []string) string { return rapid.SampledFrom(from).Draw(d.T, "pick") }

func (d drawn) oneIn(n int) bool { return rapid.IntRange(1, n).Draw(d.T, "one in") == 1 }

// kind is a type that expressions have.
func (d drawn) kind() string { return d.pick(slices.Sorted(maps.Keys(expressions))) }

// operand is an expression of the type, which goes so many pipelines deep.
func (d drawn) operand(kind string, depth int) string {
	switch {
	case kind == "any" || d.oneIn(12):
		kind = d.kind()
	case kind == "version":
		return d.pick(versions)
	}
	if depth > 0 && d.oneIn(3) {
		return "(" + d.pipeline(kind, depth-1) + ")"
	}
	return d.pick(expressions[kind])
}

// call is a function that returns the type, with its arguments but the last omitted.
func (d drawn) call(kind string, omitted, depth int) string {
	var fit []string
	for name, s := range signatures {
		if s.returns == kind || len(expressions[kind]) == 0 {
			fit = append(fit, name)
		}
	}
	if slices.Sort(fit); len(fit) == 0 || d.oneIn(12) {
		fit = slices.Sorted(maps.Keys(signatures))
	}
	name, same := d.pick(fit), d.kind()
	words := []string{name}
	for _, takes := range signatures[name].takes[:len(signatures[name].takes)-omitted] {
		if takes == "same" {
			takes = same
		}
		if words = append(words, d.operand(takes, depth)); name == "index" && d.oneIn(3) {
			words = append(words[:1], d.operand("list", depth), d.pick([]string{"0", "1", "99", "-1", ".zero"}))
			break
		}
	}
	if d.oneIn(12) {
		words = words[:len(words)-1]
	}
	return strings.Join(words, " ")
}

// pipeline has a value of the type.
func (d drawn) pipeline(kind string, depth int) string {
	text := ""
	if d.oneIn(8) {
		text = d.pick([]string{"$a := ", "$b := ", "$c := ", "$a = ", "$b = ", "$ = "})
	}
	switch rapid.IntRange(0, 3).Draw(d.T, "commands") {
	case 0:
		return text + d.pick(expressions[kind])
	case 1:
		return text + d.operand("any", depth) + " | " + d.call(kind, 1, depth)
	}
	return text + d.call(kind, 0, depth)
}

// node is a part of a template.
func (d drawn) node(depth int) string {
	open := d.pick([]string{"{{ ", "{{- ", "{{"})
	end := d.pick([]string{" }}", " -}}", "}}"})
	kinds := []string{"text", "action", "declaration", "comment"}
	if depth > 0 {
		kinds = []string{"text", "action", "declaration", "if", "with", "range", "range"}
	}
	if d.inRange {
		kinds = append(kinds, "break", "continue")
	}
	switch kind := d.pick(kinds); kind {
	case "text":
		return d.pick([]string{"text ", "\n", " a\n", "100%s\n"})
	case "comment":
		return "{{/* comment */}}"
	case "declaration":
		name := d.pick([]string{"a", "b", "c", "d"})
		return open + "$" + name + d.pick([]string{" := ", " = "}) + d.pipeline(map[string]string{"a": "text", "b": "number", "c": "list", "d": "other"}[name], 1) + end
	case "if", "with":
		text := open + kind + " " + d.pipeline(d.kind(), 1) + end + d.nodes(depth-1)
		if d.oneIn(3) {
			text += "{{ else " + kind + " " + d.operand("any", 1) + " }}" + d.nodes(depth-1)
		}
		if d.oneIn(2) {
			text += "{{ else }}" + d.nodes(depth-1)
		}
		return text + open + "end" + end
	case "range":
		names := d.pick([]string{"", "", "$a := ", "$d, $a := ", "$d, $a = ", "$c, $c := ", "$a = "})
		// In parentheses a number is not refused by checkList.
		over := "(" + d.operand(d.pick([]string{"list", "map", "list", "any"}), 1) + ")"
		text := open + "range " + names + over + end + drawn{d.T, true}.nodes(depth-1) + "{{ . }}{{ $d }}{{ $a }}"
		if d.oneIn(3) {
			text += "{{ else }}" + d.nodes(depth-1)
		}
		return text + "{{ end }}"
	case "break", "continue":
		return d.pick([]string{"{{ if .on }}", "{{ if $.on }}", "{{ if $.off }}"}) + "{{ " + kind + " }}{{ end }}"
	}
	return open + d.pipeline(d.kind(), 2) + end
}

func (d drawn) nodes(depth int) string {
	var text strings.Builder
	for range rapid.IntRange(0, 3).Draw(d.T, "nodes") {
		text.WriteString(d.node(depth))
	}
	return text.String()
}

// values of all types that templates may meet. Their texts are secret.
func (d drawn) values() map[string]any {
	text := func() string { return d.pick([]string{"secret", "secret\nsecret", "", "1.2", "ä"}) }
	texts := func() []string {
		return rapid.SliceOfN(rapid.SampledFrom([]string{"secret", "", "b"}), 0, 3).Draw(d.T, "texts")
	}
	inner := map[string]string{"a": text(), "b": text()}
	given := map[string]any{
		"x": text(), "none": "", "version": "v1.36.3", "n": rapid.IntRange(-1, 3).Draw(d.T, "n"), "zero": 0,
		"float": rapid.SampledFrom([]float64{0, 1.5, 2}).Draw(d.T, "float"), "json": json.Number("7"), "on": true, "off": false, "nil": nil,
		"list": texts(), "empty": []string{}, "unset": []string(nil), "any": []any{inner, texts(), text(), 3, nil},
		"labels": inner, "map": map[string]any{"text": text(), "inner": inner, "list": []any{text(), 1}, "nil": nil}, "unsetMap": map[string]any(nil),
	}
	if d.oneIn(4) {
		delete(given, d.pick(slices.Sorted(maps.Keys(given))))
	}
	return given
}

// executed is what text/template makes of the content. Of its join any nil is an empty list: it
// takes one from a function, but not one that stands in a list or map.
func executed(content string, values map[string]any) (string, error) {
	given := texttemplate.FuncMap{"join": func(separator string, list any) (string, error) {
		if texts, is := list.([]string); is || list == nil {
			return strings.Join(texts, separator), nil
		}
		return "", errors.New("no list of texts")
	}}
	for _, name := range []string{"default", "indent", "b64enc", "semverCompare"} {
		given[name] = functions[name]
	}
	t, err := texttemplate.New("content").Option("missingkey=error").Funcs(given).Parse(content)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = t.Execute(&text, values)
	return text.String(), err
}

// evaluated is what is made of it here, with values as they are.
func evaluated(content string, values map[string]any) (string, error) {
	tree, err := parseActions(content)
	if err != nil {
		return "", err
	}
	out, err := evaluate(tree, values, newBudget())
	if err != nil {
		return "", err
	}
	words := make([]string, len(out.values))
	for i, value := range out.values {
		if words[i] = fmt.Sprint(value); value == nil {
			words[i] = "<no value>"
		}
	}
	return out.with(words), nil
}

// where an error is: the line.
var where = regexp.MustCompile(`^template: content:\d+`)

// compare holds the evaluator to text/template, and says whether the content prints.
func compare(t rapid.TB, content string, values map[string]any) bool {
	t.Helper()
	want, wantErr := executed(content, values)
	got, err := evaluated(content, values)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%s\nwith %#v fails with %v, want %v", content, values, err, wantErr)
	}
	if err != nil && strings.Contains(err.Error(), "secret") && !strings.Contains(content, "secret") {
		t.Fatalf("%s\nthe error tells a value: %v", content, err)
	}
	if err == nil {
		if got != want {
			t.Fatalf("%s\nwith %#v prints\n%s\nwant\n%s", content, values, got, want)
		}
		return true
	}
	if where.FindString(err.Error()) != where.FindString(wantErr.Error()) {
		t.Fatalf("%s\nfails with %v, want %v", content, err, wantErr)
	}
	return false
}

// TestLIFE2_TemplatesPrintWhatTextTemplatePrints holds the evaluator to the language that
// docs/joining.md names.
func TestLIFE2_TemplatesPrintWhatTextTemplatePrints(t *testing.T) {
	printed, failed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := drawn{T: t}
		values := d.values()
		for range 10 {
			if compare(t, `{{ $a := .x }}{{ $b := .n }}{{ $c := .list }}{{ $d := .nil }}`+d.nodes(2), values) {
				printed++
			} else {
				failed++
			}
		}
	})
	t.Logf("%d templates printed, %d failed", printed, failed)
}

// TestLIFE2_CornersOfTheLanguage are what few templates have, as text/template has them.
func TestLIFE2_CornersOfTheLanguage(t *testing.T) {
	given := cornerValues()
	for _, contents := range corners {
		for _, content := range contents {
			compare(t, content, given)
		}
	}
}

// FuzzEvaluate has contents that no grammar of ours has drawn.
func FuzzEvaluate(f *testing.F) {
	for _, contents := range corners {
		for _, content := range contents {
			f.Add(content)
		}
	}
	given := cornerValues()
	delete(given, "json") // text/template would call its methods
	f.Fuzz(func(t *testing.T, content string) {
		// text/template has no bounds, and names another line of an action that has several.
		_, err := evaluated(content, given)
		if _, refused := parseActions(content); refused != nil || errors.Is(err, errTooMuch) || errors.Is(err, errTooLong) || strings.Contains(content, "\n") {
			t.Skip()
		}
		compare(t, content, given)
	})
}

func cornerValues() map[string]any {
	return map[string]any{
		"x": "secret", "n": 2, "zero": 0, "on": true, "float": 1.5, "json": json.Number("7"), "nil": nil,
		"list": []string{"a", "b"}, "empty": []string{}, "unset": []string(nil), "any": []any{"a", nil, 1},
		"labels": map[string]string{"b": "2", "a": "1"}, "map": map[string]any{"a": map[string]string{"b": "c"}},
	}
}

// corners are contents by what they are about.
var corners = [][]string{
	// Variables.
	{"{{ $a := 1 }}{{ if .on }}{{ $a = 2 }}{{ $a := 3 }}{{ $a }}{{ end }}{{ $a }}", "{{ $a = 1 }}", "{{ $a }}", "{{ or .on ($a := 1) }}{{ $a }}", "{{ $ = .labels }}{{ $.a }}"},
	{"{{ ($a := .map).a.b }}{{ $a }}", "{{ with $a := .x }}{{ . }}{{ $a }}{{ end }}", "{{ with $a := .zero }}{{ else }}{{ $a }}{{ end }}", "{{ $a := .nil }}{{ $a.b }}", "{{ or .on ($a := 1) }}{{ $a = 1 }}"},
	// Ranges.
	{"{{ range $k, $v := .labels }}{{ $k }}{{ $v }}{{ end }}", "{{ range .any }}[{{ . }}]{{ end }}", "{{ range .empty }}{{ else }}none{{ end }}", "{{ range .nil }}{{ else }}nil{{ end }}"},
	{"{{ range .n }}{{ . }}{{ end }}", "{{ range $i := .n }}{{ $i }}{{ break }}{{ end }}", "{{ range $i, $v := .n }}{{ end }}", "{{ range .x }}{{ end }}", "{{ range .on }}{{ end }}", "{{ range .missing }}{{ end }}"},
	{"{{ range (index .x 0) }}{{ break }}{{ end }}", "{{ $v := 1 }}{{ range $v = .list }}{{ end }}{{ $v }}", "{{ $v := 1 }}{{ range $v = .empty }}{{ end }}{{ $v }}", "{{ range $v = .list }}{{ end }}"},
	{
		"{{ range .list }}x{{ range $.empty }}{{ else }}{{ break }}{{ end }}y{{ end }}", "{{ range .list }}x{{ range $.empty }}{{ else }}{{ continue }}{{ end }}y{{ end }}",
		"{{ range .list }}{{ with $a := . }}{{ if eq . `a` }}{{ continue }}{{ end }}{{ $a }}{{ end }}{{ end }}", "{{ range $k, $v := .labels }}{{ break }}{{ end }}", "{{ range .list }}{{ .a }}{{ end }}",
	},
	// Literals.
	{"{{ 0x1e }} {{ -0x1e }} {{ 'a' }} {{ 'e' }} {{ 1e2 }} {{ 0x1p2 }} {{ 1i }} {{ 1_0 }} {{ 2.0 }} {{ -0 }} {{ true }}", "{{ eq 'e' 101 }}", "{{ eq -0x1e -30.0 }}", "{{ 18446744073709551615 }}", "{{ not 18446744073709551615 }}", "{{ nil }}", "{{ not nil }}"},
	// Commands.
	{"{{ .x 1 }}", "{{ 1 2 }}", "{{ . | .x }}", "{{ $ 1 }}", "{{ (.x) 1 }}", "{{ join }}", "{{ not join }}", "{{ (join).x }}", "{{ .x | len }}", "{{ 1 | (.x) }}", "{{ .x.y }}", "{{ (.missing).x }}"},
	// and, or, not.
	{"{{ and }}", "{{ or }}", "{{ .x | and }}", "{{ .x | or .zero }}", "{{ or .x .missing }}", "{{ and .zero .missing }}", "{{ and .x .n }}", "{{ or .zero nil }}", "{{ not .float }}", "{{ not .empty .empty }}"},
	// Comparisons.
	{"{{ eq .x }}", "{{ eq .x 1 `text` }}", "{{ eq .x `text` .x }}", "{{ eq .n 1 2 }}", "{{ eq .n 1 }}", "{{ eq .json `7` }}", "{{ eq 1i 1i }}", "{{ eq 1i 1 }}", "{{ eq .on true }}", "{{ eq (index .x 0) 115 }}", "{{ eq .float 1.5 }}"},
	{"{{ eq .nil nil }}", "{{ eq .unset nil }}", "{{ eq .empty nil }}", "{{ eq .unset .empty }}", "{{ eq .list .list }}", "{{ eq .list .labels }}", "{{ eq .unset .labels }}", "{{ eq .x nil }}", "{{ eq .x .list }}", "{{ eq nil }}"},
	{"{{ lt .n 3 }}{{ le .n 2 }}{{ gt .n 2 }}{{ ge .n 2 }}", "{{ lt .float 2.0 }}", "{{ lt .float .n }}", "{{ lt .x .n }}", "{{ lt .n .x }}", "{{ lt .x `z` }}", "{{ lt .on .on }}", "{{ le .nil .nil }}", "{{ gt .list 1 }}", "{{ ne .x 1 }}"},
	// len, index.
	{"{{ len .x }}{{ len .list }}{{ len .labels }}", "{{ len .n }}", "{{ len nil }}", "{{ index .x }}", "{{ index .nil }}", "{{ index nil `a` }}", "{{ index .list 1 }}", "{{ index .list 2 }}", "{{ index .list -1 }}"},
	{"{{ index .list `a` }}", "{{ index .labels `none` }}", "{{ index .map `none` }}", "{{ index .map `none` `none` }}", "{{ index .labels 1 }}", "{{ index .labels nil }}", "{{ index .n 1 }}", "{{ index .x 1 }}", "{{ index .list (index .x 0) }}"},
	{"{{ index .map `a` `b` }}", "{{ index .labels .json }}", "{{ index .list nil }}", "{{ index .list 1.0 }}"},
	// Types of parameters.
	{"{{ indent 2.0 .x }}", "{{ indent 1.5 .x }}", "{{ indent .float .x }}", "{{ $a := 2.0 }}{{ indent $a .x }}", "{{ indent 65 .x }}", "{{ indent -1 .x }}", "{{ .x | indent 2 }}", "{{ indent (index .x 0) .x }}", "{{ indent `1` .x }}"},
	{"{{ join `,` nil }}", "{{ join `,` .unset }}", "{{ join `,` .any }}", "{{ join 1 .list }}", "{{ .list | join `,` }}", "{{ b64enc nil }}", "{{ b64enc .json }}", "{{ b64enc 1 }}", "{{ b64enc .x .x }}", "{{ default nil nil }}"},
	{"{{ semverCompare .x `1` }}", "{{ semverCompare `1` .x }}", "{{ semverCompare `~1` `1` }}", "{{ default 1 .empty }}", "{{ default 1 .unset }}"},
}

// TestLIFE2_ErrorsNameTheAction: the position is text/template's, and the action as it is written.
func TestLIFE2_ErrorsNameTheAction(t *testing.T) {
	for content, want := range map[string]string{
		"a\n{{ .missing }}":            `template: content:2:3: executing "content" at <.missing>: map has no entry for key "missing"`,
		"{{ .x.y }}":                   `template: content:1:5: executing "content" at <.x.y>: can't evaluate field y in type string`,
		"{{ range .x }}{{ end }}":      `template: content:1:9: executing "content" at <.x>: range can't iterate over type string`,
		"{{ b64enc 1 }}":               `template: content:1:3: executing "content" at <b64enc 1>: error calling b64enc: wrong type for value; expected string; got int`,
		"{{ join \",\" }}":             `template: content:1:3: executing "content" at <join ",">: error calling join: wrong number of args: want 2 got 1`,
		"{{ semverCompare \">\" .x }}": `template: content:1:3: executing "content" at <semverCompare ">" .x>: error calling semverCompare: the second argument is no version`,
		"\n{{ printf .x }}":            `template: content:2: function "printf" not defined`,
	} {
		if _, err := evaluated(content, values("secret")); err == nil || err.Error() != want {
			t.Errorf("%s fails with\n%v, want\n%s", content, err, want)
		}
	}
}
