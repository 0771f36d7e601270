package fences

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A graph tells what each package imports, for one module and all it depends on.
// Its nodes are import paths; those of a test stand beside the plain ones.
type graph struct {
	// ours are the packages of the module itself.
	ours []string
	// imports are the edges of what a user links, testImports the additional ones
	// of our tests.
	imports, testImports map[string][]string
	// standard holds the packages of the standard library.
	standard map[string]bool
}

// load asks the go command about the packages of the module in dir that match
// pattern. The module stands alone (GOWORK=off), as it does for its users.
//
// It fails when the go command does and when nothing matches: a fence that looks
// at nothing must not be one that holds.
func load(dir, pattern string) (*graph, error) {
	cmd := exec.Command("go", "list", "-deps", "-test",
		"-json=ImportPath,Imports,Standard,ForTest,Module,Incomplete,DepsErrors,Error", pattern)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("list packages of %s: %w: %s", dir, err, bytes.TrimSpace(stderr.Bytes()))
	}
	g, err := parse(&stdout)
	if err != nil {
		return nil, fmt.Errorf("list packages of %s: %w", dir, err)
	}
	if len(g.ours) == 0 {
		return nil, fmt.Errorf("list packages of %s: nothing matches %s", dir, pattern)
	}
	return g, nil
}

// parse reads the stream of JSON objects that go list prints.
func parse(r io.Reader) (*graph, error) {
	g := &graph{imports: map[string][]string{}, testImports: map[string][]string{}, standard: map[string]bool{}}
	for dec := json.NewDecoder(r); ; {
		var p struct {
			ImportPath, ForTest string
			Imports             []string
			Standard            bool
			Module              *struct{ Main bool }
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		path := plain(p.ImportPath)
		edges := g.imports
		if p.ForTest != "" || strings.HasSuffix(path, ".test") {
			edges = g.testImports
		}
		for _, i := range p.Imports {
			edges[path] = append(edges[path], plain(i))
		}
		g.standard[path] = p.Standard
		if p.Module != nil && p.Module.Main && !strings.HasSuffix(path, ".test") {
			g.ours = append(g.ours, path)
		}
	}
	slices.Sort(g.ours)
	g.ours = slices.Compact(g.ours)
	return g, nil
}

// plain is the import path without the test that it was compiled for.
func plain(path string) string {
	path, _, _ = strings.Cut(path, " ")
	return path
}

// next are the packages that one step leads to.
func (g *graph) next(path string, tests bool) []string {
	if !tests {
		return g.imports[path]
	}
	return append(slices.Clone(g.imports[path]), g.testImports[path]...)
}

// chain is the shortest way from a package to one that match accepts, both ends
// included; nil if there is none.
func (g *graph) chain(from string, tests bool, match func(string) bool) []string {
	cameFrom := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, p := range g.next(queue[0], tests) {
			if _, seen := cameFrom[p]; seen {
				continue
			}
			cameFrom[p] = queue[0]
			if match(p) {
				return trace(cameFrom, p)
			}
			queue = append(queue, p)
		}
	}
	return nil
}

func trace(cameFrom map[string]string, to string) []string {
	var way []string
	for p := to; p != ""; p = cameFrom[p] {
		way = append(way, p)
	}
	slices.Reverse(way)
	return way
}

// under reports whether path is prefix or lies below it. With a $ behind prefix nothing below it is
// meant.
func under(path, prefix string) bool {
	if one, alone := strings.CutSuffix(prefix, "$"); alone {
		return path == one
	}
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// underAny reports whether path lies under one of the prefixes.
func underAny(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return under(path, p) })
}

// breaches are the ways in which the graph's own packages break the rule.
func (r rule) breaches(g *graph) []string {
	var found []string
	for _, p := range g.ours {
		folder := strings.TrimPrefix(p, root)
		// The external tests of a package live under its path with this suffix.
		folder, external := strings.CutSuffix(folder, "_test")
		if !underAny(folder, r.from) || external && !r.tests {
			continue
		}
		if way := g.chain(p, r.tests, func(q string) bool { return underAny(q, r.never) }); way != nil {
			found = append(found, strings.Join(way, "\n\t→ "))
		}
		for _, q := range g.next(p, r.tests) {
			if underAny(q, r.neverDirectly) || r.excludes(g, q) {
				found = append(found, p+"\n\t→ "+q)
			}
		}
	}
	return found
}

// excludes reports whether an allow-list leaves the import out.
func (r rule) excludes(g *graph, path string) bool {
	if len(r.only) == 0 || g.standard[path] || underAny(path, r.only) {
		return false
	}
	return !underAny(strings.TrimPrefix(path, root), r.from)
}

// modules are the folders of the workspace's modules, from go.work.
func modules() ([]string, error) {
	cmd := exec.Command("go", "work", "edit", "-json")
	cmd.Dir = top
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("read go.work: %w", err)
	}
	var work struct{ Use []struct{ DiskPath string } }
	if err := json.Unmarshal(out, &work); err != nil {
		return nil, fmt.Errorf("read go.work: %w", err)
	}
	var dirs []string
	for _, u := range work.Use {
		dirs = append(dirs, filepath.Clean(u.DiskPath))
	}
	if len(dirs) == 0 {
		return nil, errors.New("read go.work: it uses no module")
	}
	return dirs, nil
}

// top is the root of the tree, seen from this folder.
const top = "../.."
