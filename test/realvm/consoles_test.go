//go:build linux

package realvm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/test/realvm/guest"
)

// showTrouble logs, when the test has failed, what the API server has and how each console ends.
func (f *fixture) showTrouble(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		out, err := f.kubectl(context.Background(), "", "get", "machines,nodes,certificatesigningrequests,pods", "--all-namespaces", "-o", "wide")
		t.Log(out, err)
		for path, text := range f.readConsoles() {
			t.Logf("%s ends with:\n%s", path, guest.End(text, 60))
		}
	})
}

// readConsoles returns what each VM that is there has printed on its console, by the file's path.
func (f *fixture) readConsoles() map[string][]byte {
	paths, _ := filepath.Glob(filepath.Join(f.consoles, "*", "console.log")) // the pattern is good
	consoles := map[string][]byte{}
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil { // a VM may go meanwhile
			consoles[path] = text
		}
	}
	return consoles
}

// guests remembers since when each guest shows its login prompt.
type guests struct {
	fixture  *fixture
	prompted map[string]time.Time
}

func (f *fixture) watchGuests() guests { return guests{f, map[string]time.Time{}} }

// stuck returns an error that wraps guest.ErrStuck if a guest will not become a Node.
func (g guests) stuck(now time.Time) error {
	var stuck []error
	for path, text := range g.fixture.readConsoles() {
		if !guest.AtPrompt(text) {
			continue
		}
		if _, known := g.prompted[path]; !known {
			g.prompted[path] = now
		}
		if err := guest.Stuck(text, now.Sub(g.prompted[path])); err != nil {
			stuck = append(stuck, err)
		}
	}
	return errors.Join(stuck...)
}
