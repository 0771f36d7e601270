package userdata

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/core/bootstrap/template"
	"github.com/millwright-dev/millwright/test/tier"
)

// attacks are values that run a command where a shell reads them as more than text.
var attacks = []string{
	"$(touch escaped)", "`touch escaped`", "; touch escaped;", "\ntouch escaped\n", `"; touch escaped; "`, "'; touch escaped; '", `\"; touch escaped; \"`,
	`\'; touch escaped; \'`, "a[$(touch escaped)]", "x)\ntouch escaped", "EOF\ntouch escaped\n", "&& touch escaped", "| touch escaped", "}; touch escaped", "#\ntouch escaped",
	`\`, `'`, `"`, "''touch escaped''",
}

// surroundings are what an author may write around an action, well or badly. None of them runs a
// value by itself, as eval would.
var surroundings = []string{
	"echo ", " ", "\n", ";", "'", `"`, `\`, "$", "(", ")", "{ ", "; }", "#", " # ", "a=", "export a=", "=", "$(echo ", `"$(echo "`, "`", "<<EOF\n", "\nEOF\n", "$((", "))", "[ 1 = ",
	" ]", "[[ 1 -eq ", " ]]", "${a:-", "}", "$'", "if :; then ", "; fi", "case a in ", ") :;; esac", "for a in ", "; do :; done", "|| ", "&& ", "| cat", "x", "> /dev/null", "\\\n", "\t",
}

// document has one file of the format.
func document(t rapid.TB, format, content string, value any) (string, error) {
	text, err := yaml.Marshal(map[string]any{"files": []map[string]any{{"path": "/etc/x", "format": format, "content": content}}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := template.Parse(string(text))
	if err != nil {
		return "", err
	}
	files, _, err := d.Render(map[string]any{"x": value})
	if err != nil {
		return "", err
	}
	return files[0].Content, nil
}

// TestLIFE2_NoShellRunsWhatATemplatePrints has real shells run what becomes of templates whose
// actions stand anywhere.
func TestLIFE2_NoShellRunsWhatATemplatePrints(t *testing.T) {
	accepted, dir := 0, t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(surroundings), 0, 3).Draw(t, label), "")
		}
		for range 50 { // one of twenty is accepted
			content := draw("before") + "{{ .x }}" + draw("between") + "{{ .x }}" + draw("after")
			value := rapid.SampledFrom(attacks).Draw(t, "value") + rapid.SampledFrom(append(attacks, "")).Draw(t, "more")
			script, err := document(t, "sh", content, value)
			if err != nil {
				continue
			}
			accepted++
			for _, shell := range []string{"bash", "sh"} {
				command := exec.Command(shell, "-c", script)
				command.Dir, command.Env = dir, []string{"PATH=/usr/bin:/bin"}
				_ = command.Run() // many are no scripts
				if _, err := os.Stat(filepath.Join(dir, "escaped")); err == nil {
					_ = os.Remove(filepath.Join(dir, "escaped"))
					t.Fatalf("with %q\n%s\nruns it in %s:\n%s", value, content, shell, script)
				}
			}
		}
	})
	t.Logf("%d templates were accepted", accepted)
	if accepted == 0 {
		t.Error("no template was accepted")
	}
}

// readBack is a program that reads each NAME.yaml and NAME.toml of a folder, as programs in Python
// do, and writes what it has under the key x to NAME.EXTENSION.json.
const readBack = `
import json, os, sys, tomllib, yaml
for name in sorted(os.listdir(sys.argv[1])):
    path = os.path.join(sys.argv[1], name)
    with open(path, "rb") as f:
        data = f.read().decode("utf-8")
    read = tomllib.loads(data) if name.endswith("toml") else yaml.load(data, Loader=yaml.CSafeLoader)
    with open(path + ".json", "w") as f:
        json.dump(read["x"], f)
`

// TestLIFE2_DataIsReadBackAsItWasPrinted has other parsers than core's read generated values.
func TestLIFE2_DataIsReadBackAsItWasPrinted(t *testing.T) {
	tier.Long(t, "it takes cloud-init")
	const values = 300
	dir, printed := t.TempDir(), map[string]any{}
	for i := range values {
		for format, content := range map[string]string{"yaml": "before: 1\nx: {{ .x }}\nafter: [2]\n", "toml": "before = 1\nx = {{ .x }}\nafter = [2]\n"} {
			var value any = hostile.Example(i)
			if i%3 == 0 {
				value = []string{hostile.Example(i), hostile.Example(i + 1)}
			}
			text, err := document(t, format, content, value)
			if err != nil {
				continue
			}
			name := filepath.Join(dir, fmt.Sprintf("%d.%s", i, format))
			write(t, name, text, 0o600)
			printed[name] = value
		}
	}
	run(t, pythonOf(t, "cloud-init"), "-c", readBack, dir)
	if len(printed) < values {
		t.Errorf("%d values were printed, %d are wanted", len(printed), values)
	}
	for name, value := range printed {
		data, err := os.ReadFile(name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var got, given any
		if json.Unmarshal(data, &got) != nil || json.Unmarshal(want, &given) != nil || fmt.Sprint(got) != fmt.Sprint(given) {
			t.Errorf("%s is read as %q, not %q", filepath.Base(name), got, given)
		}
	}
}
