package example

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheExampleIsSmall holds the driver to what the guide says of it: nobody copies what takes an
// evening to read.
func TestTheExampleIsSmall(t *testing.T) {
	const most = 500
	lines := 0
	err := filepath.WalkDir("cmd", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		lines += bytes.Count(text, []byte("\n"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if lines == 0 || lines > most {
		t.Errorf("the driver has %d lines of Go, want at most %d", lines, most)
	}
}
