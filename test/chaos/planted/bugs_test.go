package planted

import (
	"go/parser"
	"go/token"
	"testing"
)

const root = "../../.."

// Each bug can be planted into the code as it is now. That chaos finds them takes minutes: `make
// chaos-planted`.
func TestBugsCanBePlanted(t *testing.T) {
	for _, b := range Bugs() {
		t.Run(b.Name, func(t *testing.T) {
			source, err := b.Source(root)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.ParseFile(token.NewFileSet(), b.File, source, 0); err != nil {
				t.Error(err)
			}
			if found, ok := Find(b.Name); !ok || found.What == "" || len(found.Breaks) == 0 {
				t.Errorf("found as %+v, %t", found, ok)
			}
		})
	}
}
