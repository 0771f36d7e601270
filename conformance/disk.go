package conformance

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/millwright-dev/millwright/transport/launch"
)

// noSecretsOnDisk looks for the secrets of a machine's whole life, and of one that fails, in the
// files of the driver: in the folders that the config names, and in the one that a driver which the
// harness starts gets for its temporary files.
func noSecretsOnDisk(ctx context.Context, t *trial) {
	folders := slices.Clone(t.config.DriverFiles)
	if t.driver.Process() == nil && len(folders) == 0 {
		t.notRun("it has to search what the driver writes: name the folders as driverFiles, or have it started, by an endpoint exec:///path")
	}
	if t.driver.Process() != nil {
		folder := t.folder()
		defer func() { _ = os.RemoveAll(folder) }()
		folders = append(folders, folder)
		defer t.startAnother(ctx, func(c *launch.Command) { keepIn(c, folder) })()
	}
	c := newCanaries(t)
	t.live(ctx, c, func() { c.search(t, folders) })
	c.search(t, folders)
}

// folder makes a new one. Its path is short: sockets are made in it.
func (t *trial) folder() string {
	folder, err := os.MkdirTemp("", "conf")
	if err != nil {
		t.fatalf("make a folder: %v", err)
	}
	return folder
}

// keepIn has a driver write its temporary files, and its own if it is told of no other home, into a
// folder.
func keepIn(c *launch.Command, folder string) {
	c.Env = append([]string{"HOME=" + folder}, c.Env...)
	c.Env = append(c.Env, "TMPDIR="+folder)
}

// search notes a breach for each file that holds one of them, or has it in its name.
func (c canaries) search(t *trial, folders []string) {
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				var content []byte
				content, err = os.ReadFile(path)
				for _, what := range c.in(append(content, path...)) {
					t.errorf("the file %s holds %s", path, what)
				}
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it went while we looked
			}
			return err
		})
		if err != nil {
			t.fatalf("search the driver's files: %v", err)
		}
	}
}
