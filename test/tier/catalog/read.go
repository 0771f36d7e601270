// Package catalog reads from the sources which tests of whole processes show which behaviour of
// docs/features.md, and which of them are left to `make test-long`.
package catalog

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Modules are the folders with tests of whole processes.
func Modules() []string { return []string{"localcluster", "test"} }

// Test is one that carries ids of behaviours in its name.
type Test struct {
	// Package is its folder below the repository's root.
	Package, Name string
	IDs           []string
	// Why says why it is of `make test-long` alone; empty for one that is of `make test` as well.
	Why string
}

// Read returns the tests of the modules below root, sorted by package and name.
func Read(root string) ([]Test, error) {
	var tests []Test
	for _, module := range Modules() {
		err := filepath.WalkDir(filepath.Join(root, module), func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(path, "_test.go") {
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			found, err := parse(filepath.ToSlash(folder), path, text)
			tests = append(tests, found...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the tests of %s: %w", module, err)
		}
	}
	slices.SortFunc(tests, func(a, b Test) int {
		return strings.Compare(a.Package+" "+a.Name, b.Package+" "+b.Name)
	})
	return tests, nil
}

// parse returns the tests of one file.
func parse(folder, path string, text []byte) ([]Test, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var tests []Test
	for _, decl := range file.Decls {
		f, is := decl.(*ast.FuncDecl)
		if !is || f.Recv != nil {
			continue
		}
		ids := IDs(f.Name.Name)
		if len(ids) == 0 {
			continue
		}
		why, err := leftOut(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, f.Name.Name, err)
		}
		tests = append(tests, Test{Package: folder, Name: f.Name.Name, IDs: ids, Why: why})
	}
	return tests, nil
}

var named = regexp.MustCompile(`^Test((?:[A-Z]+[0-9]+_)+)[^/]*$`)

// IDs are the behaviours that a test's name says it shows; none for a test without and a subtest.
func IDs(test string) []string {
	match := named.FindStringSubmatch(test)
	if match == nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(match[1], "_"), "_")
}

// leftOut returns the reason that a test gives tier.Long in its first line; empty without.
func leftOut(f *ast.FuncDecl) (string, error) {
	if f.Body == nil || len(f.Body.List) == 0 {
		return "", nil
	}
	statement, is := f.Body.List[0].(*ast.ExprStmt)
	if !is {
		return "", nil
	}
	call, is := statement.X.(*ast.CallExpr)
	if !is || len(call.Args) != 2 {
		return "", nil
	}
	function, is := call.Fun.(*ast.SelectorExpr)
	if !is || function.Sel.Name != "Long" {
		return "", nil
	}
	if in, is := function.X.(*ast.Ident); !is || in.Name != "tier" {
		return "", nil
	}
	text, is := call.Args[1].(*ast.BasicLit)
	if !is || text.Kind != token.STRING {
		return "", fmt.Errorf("tier.Long gets its reason as a literal")
	}
	return strconv.Unquote(text.Value)
}
