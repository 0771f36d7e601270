package fences

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestImports holds every rule against every module of the workspace.
func TestImports(t *testing.T) {
	dirs, err := modules()
	if err != nil {
		t.Fatal(err)
	}
	var graphs []*graph
	for _, dir := range dirs {
		g, err := load(filepath.Join(top, dir), "./...")
		if err != nil {
			t.Error(err)
			continue
		}
		graphs = append(graphs, g)
	}
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			for _, g := range graphs {
				for _, b := range r.breaches(g) {
					t.Errorf("forbidden import: %s\nbecause %s", b, r.reason)
				}
			}
			// What could not be listed is reported above; here it would look empty.
			if len(graphs) == len(dirs) {
				checkSubjects(t, r, graphs)
			}
		})
	}
}

// checkSubjects wants each folder that the rule names, and that is there, to hold
// packages: a typing error must not turn a fence off.
func checkSubjects(t *testing.T, r rule, graphs []*graph) {
	t.Helper()
	for _, folder := range r.from {
		if _, err := os.Stat(filepath.Join(top, folder)); err != nil {
			continue // comes later
		}
		guards := func(g *graph) bool {
			return slices.ContainsFunc(g.ours, func(p string) bool { return under(p, root+folder) })
		}
		if !slices.ContainsFunc(graphs, guards) {
			t.Errorf("%s holds no package that the rule could guard", folder)
		}
	}
}

// TestLoadFails shows that a fence which cannot look does not hold.
func TestLoadFails(t *testing.T) {
	tests := map[string]struct {
		source  string // of the only file, if any
		pattern string
		reason  string
	}{
		"no such folder":    {source: "package p", pattern: "./nowhere", reason: "a typing error in a pattern"},
		"no packages":       {pattern: "./...", reason: "go list only warns of a pattern without a match"},
		"unresolved import": {source: "package p\n\nimport _ \"example.com/missing\"", pattern: "./...", reason: "go.mod lacks a requirement"},
		"syntax error":      {source: "package", pattern: "./...", reason: "its imports cannot be told"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "go.mod"), "module example.com/p\n\ngo 1.26.0\n")
			if tc.source != "" {
				write(t, filepath.Join(dir, "p.go"), tc.source)
			}
			if _, err := load(dir, tc.pattern); err == nil {
				t.Errorf("load succeeded, want an error: %s", tc.reason)
			}
		})
	}
}

// TestBreaches shows that each kind of rule catches what it forbids, and that it
// says by which way.
func TestBreaches(t *testing.T) {
	g, err := parse(strings.NewReader(`
{"ImportPath": "context", "Standard": true}
{"ImportPath": "k8s.io/api", "Imports": ["context"]}
{"ImportPath": "k8s.iox/api"}
{"ImportPath": "example.com/via", "Imports": ["k8s.io/api"]}
{"ImportPath": "` + root + `sdk", "Module": {"Main": true}, "Imports": ["example.com/via", "k8s.iox/api"]}
{"ImportPath": "` + root + `sdk/rig", "Module": {"Main": true}, "Imports": ["context", "` + root + `sdk"]}
{"ImportPath": "` + root + `sdk/alone", "Module": {"Main": true}, "Imports": []}
{"ImportPath": "` + root + `sdk/alone [` + root + `sdk/alone.test]", "ForTest": "` + root + `sdk/alone", "Module": {"Main": true}, "Imports": ["k8s.io/api"]}
{"ImportPath": "` + root + `sdk/alone_test [` + root + `sdk/alone.test]", "ForTest": "` + root + `sdk/alone", "Module": {"Main": true}, "Imports": ["` + root + `sdk/alone [` + root + `sdk/alone.test]"]}
`))
	if err != nil {
		t.Fatal(err)
	}
	const to = "\n\t→ "
	tests := map[string]struct {
		rule rule
		want []string
	}{
		"by any way": {
			rule: rule{from: []string{"sdk"}, never: []string{"k8s.io"}},
			want: []string{
				root + "sdk" + to + "example.com/via" + to + "k8s.io/api",
				root + "sdk/rig" + to + root + "sdk" + to + "example.com/via" + to + "k8s.io/api",
			},
		},
		"tests, too": {
			rule: rule{from: []string{"sdk/alone"}, never: []string{"k8s.io"}, tests: true},
			want: []string{
				root + "sdk/alone" + to + "k8s.io/api",
				root + "sdk/alone_test" + to + root + "sdk/alone" + to + "k8s.io/api",
			},
		},
		"tests apart":        {rule: rule{from: []string{"sdk/alone"}, never: []string{"k8s.io"}}},
		"directly":           {rule: rule{from: []string{"sdk"}, neverDirectly: []string{"context"}}, want: []string{root + "sdk/rig" + to + "context"}},
		"one package":        {rule: rule{from: []string{"sdk"}, neverDirectly: []string{"context$"}}, want: []string{root + "sdk/rig" + to + "context"}},
		"not one above":      {rule: rule{from: []string{"sdk"}, never: []string{"k8s.io$"}}},
		"an allow-list":      {rule: rule{from: []string{"sdk"}, only: []string{"example.com"}}, want: []string{root + "sdk" + to + "k8s.iox/api"}},
		"whole elements":     {rule: rule{from: []string{"sd"}, never: []string{"k8s.io"}}},
		"somebody else's":    {rule: rule{from: []string{"core"}, never: []string{"k8s.io"}}},
		"nothing to object":  {rule: rule{from: []string{"sdk"}, never: []string{"google.golang.org/grpc"}}},
		"a longer namesake":  {rule: rule{from: []string{"sdk"}, neverDirectly: []string{"k8s.io"}}},
		"the folder's peers": {rule: rule{from: []string{"sdk"}, only: []string{"example.com", "k8s.iox"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := tc.rule.breaches(g)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("breaches (-want +got):\n%s", diff)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
