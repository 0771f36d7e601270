package planted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const manager = "millwright-manager"

// Source returns the file with the bug in it; root is the repository's. It fails where the code is
// not as it was when the bug was written down.
func (b Bug) Source(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, b.File))
	if err != nil {
		return "", fmt.Errorf("plant %s: %w", b.Name, err)
	}
	if n := strings.Count(string(text), b.Old); n != 1 {
		return "", fmt.Errorf("plant %s: what it changes stands %d times in %s, want once: plant it anew", b.Name, n, b.File)
	}
	return strings.Replace(string(text), b.Old, b.New, 1), nil
}

// Build fills the new folder dir with Millwright's executables: those of commands, but the manager,
// which has the bug.
func (b Bug) Build(ctx context.Context, root, commands, dir string) error {
	overlay, err := b.overlay(root, dir)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(commands)
	if err != nil {
		return fmt.Errorf("list the executables: %w", err)
	}
	var errs []error
	for _, e := range entries {
		target, err := filepath.Abs(filepath.Join(commands, e.Name()))
		if e.Name() != manager {
			errs = append(errs, err, os.Symlink(target, filepath.Join(dir, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("link the executables: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-overlay="+overlay, "-o", filepath.Join(dir, manager), "./cmd/"+manager)
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build a manager with the bug %s: %w\n%s", b.Name, err, out)
	}
	return nil
}

// overlay writes what `go build` takes for the sources.
func (b Bug) overlay(root, dir string) (string, error) {
	source, err := b.Source(root)
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(filepath.Join(root, b.File))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, "planted.go.txt"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(changed, []byte(source), 0o600), os.WriteFile(overlay, list, 0o600))
}
