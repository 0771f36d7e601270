package planted

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/millwright-dev/millwright/test/tier"
)

const root = "../../.."

// Each bug can be planted into the code as it is now, and compiles there. That chaos finds them
// takes minutes: `make chaos PLANTED=all`.
func TestBugsCanBePlanted(t *testing.T) {
	tier.Long(t, "it compiles the core with each bug")
	for _, b := range Bugs() {
		t.Run(b.Name, func(t *testing.T) {
			overlay, err := b.overlay(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			build := exec.CommandContext(t.Context(), "go", "build", "-overlay="+overlay, "./"+filepath.Dir(b.File))
			build.Dir = root
			if out, err := build.CombinedOutput(); err != nil {
				t.Errorf("the code with the bug does not compile: %v\n%s", err, out)
			}
			if found, ok := Find(b.Name); !ok || found.What == "" || len(found.Breaks) == 0 {
				t.Errorf("found as %+v, %t", found, ok)
			}
		})
	}
}
