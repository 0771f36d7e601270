package template

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// values with a text that leaves its place wherever it can.
func values(text string) map[string]any {
	return map[string]any{
		"x": text, "list": []string{text, "b"}, "n": 7, "on": true, "none": "",
		"labels": map[string]string{"a": text}, "version": "1.36.3", "map": map[string]any{"a": "b"},
	}
}

// render renders a file of the format.
func render(t testing.TB, format, content string, values map[string]any) (string, error) {
	t.Helper()
	b, err := newBody(format, content)
	if err != nil {
		return "", err
	}
	return b.render(content, values, newBudget())
}

func TestLIFE2_ActionsAreQuotedForTheirFormat(t *testing.T) {
	const hostile = "it's \"$(reboot)\"\n"
	for name, c := range map[string]struct {
		format, content, value, want string
	}{
		"no action":             {"sh", "{{ if .on }}a=\"${b}\"{{ end }} # c", "", "a=\"${b}\" # c"},
		"no format":             {"", "{{ .x }} $HOME", "v", "{{ .x }} $HOME"},
		"sh, a word":            {"sh", "echo {{ .x }}\n", hostile, "echo 'it'\\''s \"$(reboot)\"\n'\n"},
		"sh, an assignment":     {"sh", "A={{ .x }}; export A", "v", "A='v'; export A"},
		"sh, a list":            {"sh", "for i in {{ .list }}; do :; done", "a b", "for i in 'a b' 'b'; do :; done"},
		"sh, a number":          {"sh", "echo {{ .n }} {{ .on }}", "", "echo 7 true"},
		"sh, a condition":       {"sh", `{{ if semverCompare ">=1.36" .version }}echo {{ .x }}{{ else }}true{{ end }}`, "v", "echo 'v'"},
		"unit, a word":          {"unit", "[Service]\nExecStart=/bin/x --a={{ .x }}\n", "50%", "[Service]\nExecStart=/bin/x --a=50%%\n"},
		"unit, a list":          {"unit", "[Service]\nExecStart=/bin/x{{ range .list }} {{ . }}{{ end }}\n", "a", "[Service]\nExecStart=/bin/x a b\n"},
		"toml, a text":          {"toml", "a = {{ .x }}\n[b]\nc = {{ .n }}\n", hostile, "a = \"it's \\\"$(reboot)\\\"\\u000A\"\n[b]\nc = 7\n"},
		"toml, a list":          {"toml", "a = {{ .list }}", "ä", `a = ["\u00E4", "b"]`},
		"yaml, a text":          {"yaml", "a: {{ .x }}\nb: [1]\n", hostile, "a: \"it's \\\"$(reboot)\\\"\\u000A\"\nb: [1]\n"},
		"yaml, values":          {"yaml", "a: {{ .list }}\nb: {{ .on }}\n", "\U0001F600", "a: [\"\\U0001F600\", \"b\"]\nb: true\n"},
		"yaml, one document":    {"yaml", "---\na: {{ .n }}\n...\n", "", "---\na: 7\n...\n"},
		"yaml, several":         {"yaml", "a: b\n---\nc: d\n", "", "a: b\n---\nc: d\n"},
		"default":               {"sh", `echo {{ default "other" .none }} {{ default "other" (index .labels "b") }}`, "", "echo 'other' 'other'"},
		"join, b64enc, indent":  {"sh", `echo {{ join "," .list }} {{ b64enc .x }} {{ indent 2 .x }}`, "a\nb", "echo 'a\nb,b' 'YQpi' '  a\n  b'"},
		"a variable":            {"sh", `{{ $a := .x }}echo {{ $a }}`, "v", "echo 'v'"},
		"a pipeline":            {"sh", `echo {{ .x | b64enc }}`, "v", "echo 'dg=='"},
		"a marker in the text":  {"sh", `echo MILLWRIGHT00000Z {{ .x }}`, "v", "echo MILLWRIGHT00000Z 'v'"},
		"a marker in the value": {"sh", `echo {{ .x }} {{ .n }}`, "MILLWRIGHT00001Z", "echo 'MILLWRIGHT00001Z' 7"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := render(t, c.format, c.content, values(c.value))
			if err != nil || got != c.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, c.want)
			}
		})
	}
}

// TestLIFE2_MisplacedActionsAreRefused: the value stands where its quotes would mean nothing, or
// another thing.
func TestLIFE2_MisplacedActionsAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ format, content string }{
		"sh, in double quotes":      {"sh", `echo "{{ .x }}"`},
		"sh, between double quotes": {"sh", `echo "a {{ .x }} b"`},
		"sh, in single quotes":      {"sh", `echo 'a {{ .x }} b'`},
		"sh, in a comment":          {"sh", "# {{ .x }}\n"},
		"sh, in a part of a word":   {"sh", "echo a{{ .x }}"},
		"sh, two in a word":         {"sh", "echo {{ .x }}{{ .x }}"},
		"sh, behind a backslash":    {"sh", `echo \{{ .x }}`},
		"sh, behind a dollar":       {"sh", "echo ${{ .x }}"},
		"sh, in a here-document":    {"sh", "cat <<EOF\n{{ .x }}\nEOF\n"},
		"sh, in backquotes":         {"sh", "echo `echo {{ .x }}`"},
		"sh, in arithmetic":         {"sh", "echo $(( {{ .x }} ))"},
		"sh, in [[ ]]":              {"sh", "[[ 1 -eq {{ .x }} ]]"},
		"sh, in a substitution":     {"sh", `echo "$(echo " {{ .x }} ")"`},
		"sh, in an expansion":       {"sh", "echo ${a:-{{ .x }}}"},
		"sh, a list assigned":       {"sh", "a={{ .list }}"},
		"sh, an open quote":         {"sh", "echo 'a\n{{ .x }}"},
		"unit, a name":              {"unit", "[Service]\n{{ .x }}=/bin/x\n"},
		"unit, a section":           {"unit", "[{{ .x }}]\nA=b\n"},
		"unit, a comment":           {"unit", "[Service]\n# {{ .x }}\nA=b\n"},
		"unit, a line":              {"unit", "[Service]\nA=b\n{{ .x }}\n"},
		"toml, in quotes":           {"toml", `a = "{{ .x }}"`},
		"toml, in single quotes":    {"toml", `a = '{{ .x }}'`},
		"toml, a key":               {"toml", `{{ .x }} = 1`},
		"toml, a table":             {"toml", "[{{ .x }}]\n"},
		"toml, a comment":           {"toml", "a = 1 # {{ .x }}\n"},
		"toml, in a text":           {"toml", "a = \"\"\"\n{{ .x }}\"\"\"\n"},
		"yaml, in quotes":           {"yaml", `a: "{{ .x }}"`},
		"yaml, in single quotes":    {"yaml", `a: 'b {{ .x }}'`},
		"yaml, a key":               {"yaml", `{{ .x }}: b`},
		"yaml, a comment":           {"yaml", "a: b # {{ .x }}\n"},
		"yaml, in a text":           {"yaml", "a: b {{ .x }}\n"},
		"yaml, in a block":          {"yaml", "a: |\n  {{ .x }}\n"},
		"yaml, with an anchor":      {"yaml", "a: &a {{ .x }}\nb: *a\n"},
		"yaml, another document":    {"yaml", "a: b\n---\nc: {{ .x }}\n"},
		"yaml, one for another":     {"yaml", "a: &x {{ .n }}\nb: *x\n---\n{c: '{{ .x }}', d: e}\n"},
		"yaml, one for a comment":   {"yaml", "a: &x {{ .n }}\nb: *x\n# {{ .x }}\n"},
		"yaml, long by aliases":     {"yaml", "a: {{ .x }}\nb: &b " + strings.Repeat("x", maxContent/4) + "\nc: [" + strings.Repeat("*b, ", 9) + "]\nd: {e: *b}\n"},
		"yaml, text after its end":  {"yaml", "a: {{ .x }}\n...\nb: c\n"},
		"a map":                     {"yaml", "a: {{ .map }}"},
		"a key that is not there":   {"sh", "echo {{ .y }}"},
		"a label that is not there": {"sh", "echo {{ .labels.b }}"},
		"a function of sprig":       {"sh", `echo {{ env "HOME" }}`},
		"printf":                    {"sh", `echo {{ printf "%99999999d" 1 }}`},
		"the mark itself":           {"sh", `echo {{ millwright_mark .x }}`},
		"the mark in a condition":   {"sh", `{{ if (millwright_mark .x) }}{{ end }}`},
		"a range over a number":     {"sh", "{{ range 1000000000 }}{{ end }}"},
		"a template in it":          {"sh", `{{ define "a" }}{{ end }}x`},
		"a call of itself":          {"sh", `{{ template "content" . }}`},
		"more than fits":            {"sh", "{{ range .list }}" + strings.Repeat("x", maxContent) + "{{ end }}"},
		"more values than fit":      {"sh", "{{ range .long }}{{ range $.long }}{{ $.n }} {{ end }}{{ end }}"},
		"longer values than fit":    {"sh", "{{ range .long }}{{ $.long }} {{ end }}"},
		"no shell's character":      {"sh", "echo {{ .zero }}"},
		"a format of no kind":       {"ini", "a"},
		"no yaml":                   {"yaml", "a: [ {{ .x }}"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, value := range []string{"v", "'; reboot; '", "\"; reboot; \"", "a\nb: c"} {
				given := values(value)
				given["zero"], given["long"] = "\x00", make([]string, 500)
				if got, err := render(t, c.format, c.content, given); err == nil {
					t.Errorf("with %q it becomes %q", value, got)
				} else if strings.Contains(err.Error(), "reboot") {
					t.Errorf("the error tells the value: %v", err)
				}
			}
		})
	}
}

// TestLIFE2_WorkIsBounded: little is printed, or nothing, after a long time.
func TestLIFE2_WorkIsBounded(t *testing.T) {
	given := values("v")
	given["page"] = strings.Repeat("x", maxWork/50)
	for name, content := range map[string]string{
		"a range over a count":    "{{ range (1000000000000) }}{{ end }}",
		"ranges in ranges":        strings.Repeat("{{ range (50) }}", 9) + strings.Repeat("{{ end }}", 9),
		"texts that grow":         "echo {{ .x" + strings.Repeat(" | b64enc", 1000) + " }}",
		"functions of long texts": "{{ range (500) }}{{ if eq $.page (indent 64 $.page) }}{{ end }}{{ end }}",
		"words without an end":    "{{ range (len .page) }}{{ if or" + strings.Repeat(" 0", 99) + " }}{{ end }}{{ end }}",
	} {
		if got, err := render(t, "sh", content, given); !errors.Is(err, errTooMuch) {
			t.Errorf("%s: it becomes %q, %v", name, got, err)
		}
	}
}

// TestLIFE2_ADocumentHasOneBudget: what no content may do alone, many may not do together.
func TestLIFE2_ADocumentHasOneBudget(t *testing.T) {
	given := values("v")
	given["page"], given["wide"] = strings.Repeat("x", maxContent/2), map[string]string{}
	for i := range 1000 {
		given["wide"].(map[string]string)[strconv.Itoa(i)] = ""
	}
	many := func(n int, file string) string { return "files:\n" + strings.Repeat("- "+file+"\n", n) }
	for name, c := range map[string]struct {
		document string
		want     error
	}{
		"work":          {many(9, "{path: /a, format: sh, content: '{{ range (40000) }}{{ if $ }}{{ end }}{{ end }}'}"), errTooMuch},
		"sorting":       {many(1, "{path: /a, format: sh, content: '{{ range (2000) }}{{ range $.wide }}{{ break }}{{ end }}{{ end }}'}"), errTooMuch},
		"bytes":         {many(4, "{path: /a, format: sh, content: 'echo {{ .page }}'}"), errDocument},
		"bytes as they": {many(1, "{path: /a, content: '"+strings.Repeat("x", maxDocument-1000)+"'}") + many(1, "{path: /b, format: sh, content: 'echo {{ .page }}'}")[len("files:\n"):], errDocument},
		"half of each":  {many(2, "{path: /a, format: sh, content: '{{ range (40000) }}{{ if $ }}{{ end }}{{ end }}echo {{ .page }}'}"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Parse(c.document)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // each Render has its own
				if _, _, err := d.Render(given); !errors.Is(err, c.want) {
					t.Errorf("error %v, want %v", err, c.want)
				}
			}
		})
	}
}

// TestLIFE2_MarkersAreFoundAtOnce: a text that holds many is read once, and makes none longer.
func TestLIFE2_MarkersAreFoundAtOnce(t *testing.T) {
	for name, text := range map[string]string{
		"a long one": "MILLWRIGHT" + strings.Repeat("X", maxContent/2),
		"many":       strings.Repeat("MILLWRIGHT0X MILLWRIGHT1X MILLWRIGHT02X ", 1000),
		"two in one": "MILLWRIGHTMILLWRIGHT0MILLWRIGHT1",
	} {
		var o output
		_, _ = o.addText([]byte(text)), o.addValue("v")
		if m := o.mark(); strings.Contains(text, m.prefix) || len(m.markers[0]) > 30 {
			t.Errorf("%s: the prefix is %.60s", name, m.prefix)
		}
	}
}

func TestLIFE2_UnitsTakeWordsOnly(t *testing.T) {
	for _, value := range []string{"", "a b", "a\nExecStartPre=/bin/x", `a\`, "$HOME", "a;b", `"a"`, "ä", "#"} {
		if got, err := render(t, "unit", "[Service]\nExecStart=/bin/x {{ .x }}\n", values(value)); err == nil {
			t.Errorf("%q becomes %q", value, got)
		}
	}
}

func TestLIFE2_DocumentsAreReadStrictly(t *testing.T) {
	const document = `files:
- path: /etc/a
  permissions: "0600"
  format: yaml
  content: "a: {{ .x }}"
- path: /etc/b
  content: "{{ .x }}"
units:
- name: a.service
  enabled: true
  content: "[Service]\nExecStart=/bin/{{ .x }}"
`
	d, err := Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	files, units, err := d.Render(values("v"))
	if err != nil || len(files) != 2 || len(units) != 1 {
		t.Fatal(files, units, err)
	}
	if files[0] != (File{Path: "/etc/a", Content: `a: "v"`, Mode: 0o600}) || files[1] != (File{Path: "/etc/b", Content: "{{ .x }}"}) ||
		units[0] != (Unit{Name: "a.service", Content: "[Service]\nExecStart=/bin/v", Enabled: true}) {
		t.Errorf("%+v, %+v", files, units)
	}
	if _, _, err := d.Render(nil); err == nil || !strings.Contains(err.Error(), "/etc/a") {
		t.Errorf("without values: %v", err)
	}
	for names, text := range map[string]string{
		"units[0] a.service": "units: [{name: a.service, content: '{{ .x '}]",
		"files[0] /a":        "files: [{path: /a, format: sh, content: '{{ x }}'}]",
		"permissions":        "files: [{path: /a, permissions: rw}]",
		"colour":             "files: [{path: /a, colour: red}]",
		"already set":        "files: [{path: /a, path: /b}]",
		"has 257 files":      "files:\n" + strings.Repeat("- {path: /a}\n", 256) + "units: [{name: a.service}]\n",
		"by its aliases":     "files:\n- {path: /a, content: &a " + strings.Repeat("x", 1<<16) + "}\n" + strings.Repeat("- {path: /a, content: *a}\n", 9),
		"first YAML":         "files: []\n---\nunits: []\n",
		"at most":            "# " + strings.Repeat("x", maxDocument),
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%.60s: %v, want %s", text, err, names)
		}
	}
}

func TestCompareVersions(t *testing.T) {
	for constraint, want := range map[string]bool{
		">=1.36": true, ">= 1.36.3": true, ">1.36.3": false, "<=1.36.3": true, "<1.36.3": false, "=1.36.3": true, "1.36.3": true, "!=1.36.3": false,
	} {
		if got, err := compareVersions(constraint, "v1.36.3"); err != nil || got != want {
			t.Errorf("%s is %t, %v", constraint, got, err)
		}
	}
	for _, constraint := range []string{"~1.36", "=>1.36", "", ">="} {
		if _, err := compareVersions(constraint, "1.36.3"); err == nil {
			t.Errorf("%q is taken", constraint)
		}
	}
	if _, err := compareVersions(">=1", "x"); err == nil {
		t.Error("what is no version is compared")
	}
}
