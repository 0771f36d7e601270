package skeleton

import (
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// modules is the path under which Millwright's modules lie, each named after its folder.
const modules = "github.com/millwright-dev/millwright/"

// FindCheckout returns the first checkout of Millwright that one of the folders is, or lies in;
// empty for none. The folders' paths are absolute.
func FindCheckout(folders ...string) string {
	for _, folder := range folders {
		for parent := filepath.Dir(folder); ; folder, parent = parent, filepath.Dir(parent) {
			if holds(folder, "sdk") {
				return folder
			}
			if parent == folder {
				break
			}
		}
	}
	return ""
}

// holds says whether a folder has the folder of one of Millwright's modules.
func holds(folder, module string) bool {
	goMod, err := os.ReadFile(filepath.Join(folder, module, "go.mod"))
	return err == nil && modfile.ModulePath(goMod) == modules+module
}
