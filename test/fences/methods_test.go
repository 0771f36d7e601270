package fences

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// mostMethods is how many methods a type may have: one that does more does more than one thing.
const mostMethods = 25

// TestNoTypeHasTooManyMethods counts methods that somebody wrote, tests aside. Embedding hides
// methods from this test: it is for the reader, not for passing.
func TestNoTypeHasTooManyMethods(t *testing.T) {
	count := map[string]int{}
	sources(t, ".", func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		folder, err := filepath.Rel(top, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range receivers(file) {
			count[filepath.ToSlash(folder)+"."+name]++
		}
	})
	if len(count) == 0 {
		t.Error("no type has a method: does this test look in the right place?")
	}
	for name, n := range count {
		if n > mostMethods {
			t.Errorf("%s has %d methods, at most %d are good: split it by what it does", name, n, mostMethods)
		}
	}
}

// receivers returns the name of a type for each of its methods in a file.
func receivers(file *ast.File) []string {
	var names []string
	for _, d := range file.Decls {
		method, is := d.(*ast.FuncDecl)
		if !is || method.Recv == nil {
			continue
		}
		names = append(names, typeName(method.Recv.List[0].Type))
	}
	return names
}

// typeName returns the name of a receiver's type, without its star and its type parameters.
func typeName(receiver ast.Expr) string {
	switch e := receiver.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func TestReceiversAreNamedWithoutStarAndParameters(t *testing.T) {
	const source = `package p
func (a A) one()           {}
func (b *B) two()          {}
func (c *C[T]) three()     {}
func (*D[K, V]) four()     {}
func none()                {}`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(receivers(file), " "); got != "A B C D" {
		t.Errorf("the receivers are %q, want A B C D", got)
	}
}
