package v1alpha1

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestReasonsAreDocumentedAndValid wants every condition and reason to be
// documented on its own, and to be one that the API server takes.
func TestReasonsAreDocumentedAndValid(t *testing.T) {
	camelCase := regexp.MustCompile(`^[A-Z][A-Za-z]*$`)
	for name, c := range constants(t, "conditions.go") {
		if !strings.HasPrefix(c.doc, name) {
			t.Errorf("%s is documented as %q", name, c.doc)
		}
		if !camelCase.MatchString(c.value) {
			t.Errorf("%s = %q is not in CamelCase", name, c.value)
		}
	}
}

// TestKeysAreValid wants every label and annotation to be one that the API server
// takes, and to say what it is for.
func TestKeysAreValid(t *testing.T) {
	for name, c := range constants(t, "wellknown.go") {
		if !strings.HasPrefix(c.doc, name) {
			t.Errorf("%s is documented as %q", name, c.doc)
		}
		if problems := validation.IsQualifiedName(c.value); len(problems) > 0 {
			t.Errorf("%s = %q: %s", name, c.value, problems)
		}
	}
}

type constant struct{ value, doc string }

// constants returns the string constants of a file by name.
func constants(t *testing.T, file string) map[string]constant {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]constant{}
	for _, declaration := range parsed.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			values, ok := spec.(*ast.ValueSpec)
			if !ok {
				t.Fatalf("%T among constants", spec)
			}
			literal, ok := values.Values[0].(*ast.BasicLit)
			if !ok {
				t.Fatalf("%s is no literal", values.Names[0])
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			doc := values.Doc.Text()
			if !group.Lparen.IsValid() {
				doc = group.Doc.Text()
			}
			found[values.Names[0].Name] = constant{value: value, doc: doc}
		}
	}
	if len(found) == 0 {
		t.Fatalf("no constants in %s", file)
	}
	return found
}
