package main

import (
	"bytes"
	"go/format"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// driverInit runs `millwright driver init` in a folder.
func driverInit(t *testing.T, folder string, args ...string) error {
	t.Helper()
	t.Chdir(folder)
	command := driverCommand()
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SetArgs(append([]string{"init"}, args...))
	command.SetOut(io.Discard)
	return command.ExecuteContext(t.Context())
}

// checkout is this repository.
func checkout(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// That it builds and keeps to the contract is shown in test/docs.
func TestDriverInitLaysOutTheExample(t *testing.T) {
	root, work := checkout(t), t.TempDir()
	if err := driverInit(t, work, "saw-mill2", "--millwright", root); err != nil {
		t.Fatal(err)
	}
	var names []string
	entries, err := os.ReadDir(filepath.Join(work, "saw-mill2"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
		content := read(t, work, "saw-mill2", entry.Name())
		if entry.Name() != "README.md" && bytes.Contains(content, []byte("example")) {
			t.Errorf("%s still speaks of the example", entry.Name())
		}
		if entry.Name() == "README.md" && bytes.Contains(content, []byte("{{")) {
			t.Errorf("%s is not filled in", entry.Name())
		}
		if formatted, err := format.Source(content); filepath.Ext(entry.Name()) == ".go" && (err != nil || !bytes.Equal(formatted, content)) {
			t.Errorf("gofmt would change %s (%v)", entry.Name(), err)
		}
	}
	if want := []string{"README.md", "cloud.go", "conformance.yaml", "conformance_test.go", "driver.go", "go.mod", "go.sum", "main.go"}; !slices.Equal(names, want) {
		t.Errorf("laid out are %q, want %q", names, want)
	}
}

// The flags have their defaults from the name and from where the command runs.
func TestDriverInitFindsItsWay(t *testing.T) {
	root, work := checkout(t), t.TempDir()
	for name, tc := range map[string]struct {
		from         string
		args         []string
		dir, content string
	}{
		"in the checkout":     {filepath.Join(root, "cmd"), []string{"a", "--dir", filepath.Join(work, "a")}, "a", "module millwright-driver-a\n"},
		"a module's path":     {work, []string{"b", "--module", "example.com/x/b", "--millwright", root}, "b", "module example.com/x/b\n"},
		"a folder":            {work, []string{"c", "--dir", "x/y", "--millwright", root}, "x/y", "module millwright-driver-c\n"},
		"an empty folder":     {work, []string{"d", "--dir", t.TempDir(), "--millwright", root}, "", ""},
		"the path is written": {work, []string{"e", "--millwright", root}, "e", " => " + filepath.Join(root, "sdk") + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := driverInit(t, tc.from, tc.args...); err != nil {
				t.Fatal(err)
			}
			if tc.dir != "" && !bytes.Contains(read(t, work, tc.dir, "go.mod"), []byte(tc.content)) {
				t.Errorf("go.mod lacks %q:\n%s", tc.content, read(t, work, tc.dir, "go.mod"))
			}
		})
	}
}

func TestDriverInitRefuses(t *testing.T) {
	root, full, empty := checkout(t), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want []string // what is wrong, and what would be right
	}{
		"no name":                  {nil, []string{"NAME", "give one name"}},
		"two names":                {[]string{"a", "b"}, []string{"NAME", "give one name"}},
		"an empty name":            {[]string{""}, []string{`NAME: ""`, "such as my-cloud"}},
		"capitals":                 {[]string{"MyCloud"}, []string{`NAME: "MyCloud"`, "small letters"}},
		"a path":                   {[]string{"../cloud"}, []string{`NAME: "../cloud"`, "small letters"}},
		"a digit first":            {[]string{"9lives"}, []string{"NAME:", "a letter first"}},
		"a dash last":              {[]string{"cloud-"}, []string{"NAME:", "no dash last"}},
		"a long name":              {[]string{strings.Repeat("x", 64)}, []string{"NAME:", "at most 63"}},
		"no path of a module":      {[]string{"a", "--module", "my module"}, []string{"--module:", "give a path such as"}},
		"an absolute module":       {[]string{"a", "--module", "/a"}, []string{"--module:", "give a path such as"}},
		"a folder in use":          {[]string{"a", "--dir", full}, []string{"--dir: " + full, "new or empty"}},
		"a file":                   {[]string{"a", "--dir", filepath.Join(full, "file")}, []string{"--dir:", "new or empty"}},
		"in the checkout":          {[]string{"a", "--dir", filepath.Join(root, "x", "a")}, []string{"--dir:", "outside, such as " + filepath.Join(filepath.Dir(root), "a")}},
		"no checkout":              {[]string{"a", "--millwright", full}, []string{"--millwright: " + full, "sdk"}},
		"a checkout that is gone":  {[]string{"a", "--millwright", filepath.Join(full, "x")}, []string{"--millwright:", "give the folder"}},
		"no checkout to be found":  {[]string{"a", "--millwright", ""}, []string{"--millwright:", "give its path"}},
		"several things, all told": {[]string{"a", "--module", "/", "--dir", full, "--millwright", full}, []string{"--module:", "--dir:", "--millwright:"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := tc.args
			if !slices.Contains(args, "--millwright") {
				args = append(args, "--millwright", root)
			}
			err := driverInit(t, empty, args...)
			if err == nil {
				t.Fatal("it was laid out")
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error %q does not say %q", err, part)
				}
			}
			if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
				t.Errorf("something was written: %v, %v", left, err)
			}
		})
	}
}
