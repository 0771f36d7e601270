package suite

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Go's test cache keeps a test that passed until an input that Go knows changes. What lies beside
// the module is none: the hash of tools/inputs.sh is.
func TestAChangeBesideTheModuleRunsItsTestsAgain(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(top, "tools", "inputs.sh"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"tools/inputs.sh":  string(script),
		"deploy/rule.yaml": "a: rule\n",
		"m/go.mod":         "module example.com/m\n\ngo 1.26.0\n",
		"m/m_test.go": `package m

import (
	"os"
	"testing"
)

func TestRule(t *testing.T) {
	_ = os.Getenv("MILLWRIGHT_INPUTS")
	if _, err := os.ReadFile("../deploy/rule.yaml"); err != nil {
		t.Fatal(err)
	}
}
`,
	})
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", ".")
	test := func() (isCached bool) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "sh", "-c", "cd m && MILLWRIGHT_INPUTS=$(bash ../tools/inputs.sh) go test ./...")
		command.Dir, command.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Contains(string(out), "(cached)")
	}
	test()
	if !test() {
		t.Fatal("the same inputs run the test again: the cache is of no use")
	}
	for name, change := range map[string]map[string]string{
		"a manifest":              {"deploy/rule.yaml": "another: rule\n"},
		"a new manifest":          {"deploy/new.yaml": ""},
		"an executable that runs": {"bin/.etcd.key": "another key\n"},
	} {
		write(t, dir, change)
		if test() {
			t.Errorf("%s has changed, and the test passes from the cache", name)
		}
	}
}

var beside = regexp.MustCompile(`"(\.\./)+(deploy|docs|bin)|"\.\.", "(deploy|docs|bin|test)"`)

// A test that reads beside its module reads the variable, too. The modules test and localcluster
// run with -count=1.
func TestWhatReadsBesideItsModuleIsNotCached(t *testing.T) {
	tree := openTop(t)
	found := 0
	for _, file := range tree.files {
		if !strings.HasSuffix(file, "_test.go") || regexp.MustCompile(`^(test|localcluster|tools)/`).MatchString(file) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(top, file))
		if err != nil {
			t.Fatal(err)
		}
		if !beside.Match(text) {
			continue
		}
		found++
		if !strings.Contains(string(text), "MILLWRIGHT_INPUTS") {
			t.Errorf("%s reads beside its module: it has to read MILLWRIGHT_INPUTS, see tools/inputs.sh", file)
		}
	}
	if found == 0 {
		t.Error("no test reads beside its module: does this test look in the right place?")
	}
}
