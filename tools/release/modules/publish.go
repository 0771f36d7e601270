// Package modules makes the commit and the tags of a release, under which its Go modules can be
// imported, and a module proxy of files with them.
//
// In the tree, modules name each other by replace directives, which hold only there: who imports a
// module gets what its go.mod requires. The release's commit requires the release of each other
// module instead, with their checksums, and replaces nothing. So `go install` takes its commands,
// too, which refuses a module with replace directives.
package modules

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// Release is what is published.
type Release struct {
	// Version is its tag, such as v0.1.0.
	Version string
	// Repository is the folder of the repository, whose HEAD is released. It is only read.
	Repository string
	// Private are the modules, by their folders, that nobody imports.
	Private []string
	// Created is the time of its commit.
	Created time.Time
}

// ours is a module of the release.
type ours struct {
	folder string
	file   *modfile.File
	// needs are the other modules of the release that it requires, by their paths.
	needs []string
	// sums are its lines in the go.sum of whoever requires it.
	sums []string
}

func (m *ours) path() string { return m.file.Module.Mod.Path }

// Publish writes to the folder out: a git bundle with the release's commit and tags, for a
// repository that has HEAD, and the folder modules, which GOPROXY=file://… reads.
func Publish(ctx context.Context, r Release, out string) (tags []string, err error) {
	work, err := os.MkdirTemp("", "millwright-modules")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	repository, err := filepath.Abs(r.Repository)
	if err != nil {
		return nil, err
	}
	g := git{ctx: ctx, folder: work, at: r.Created}
	if _, err := g.run("clone", "--quiet", repository, "."); err != nil {
		return nil, err
	}
	head, err := g.run("rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	all, err := read(work, r.Private)
	if err != nil {
		return nil, err
	}
	if err := commitRelease(g, all, r.Version, head); err != nil {
		return nil, err
	}
	tags = []string{r.Version}
	for _, m := range sorted(all) {
		tags = append(tags, m.folder+"/"+r.Version)
	}
	for _, tag := range tags {
		if _, err := g.run("tag", tag); err != nil {
			return nil, err
		}
	}
	bundle, err := filepath.Abs(filepath.Join(out, "millwright-"+r.Version+".bundle"))
	if err != nil {
		return nil, err
	}
	if _, err := g.run(append([]string{"bundle", "create", "--quiet", bundle, "^" + head}, tags...)...); err != nil {
		return nil, err
	}
	for _, m := range sorted(all) {
		if err := store(work, m, r, filepath.Join(out, "modules")); err != nil {
			return nil, fmt.Errorf("%s: %w", m.folder, err)
		}
	}
	return tags, nil
}

// commitRelease makes the release's commit upon head. A module's checksum depends on those of the
// modules that it requires, so each is committed by itself first.
func commitRelease(g git, all map[string]*ours, version, head string) error {
	for _, m := range sorted(all) {
		if err := require(g.folder, m, all, version); err != nil {
			return fmt.Errorf("%s: %w", m.folder, err)
		}
		if err := g.commit("Require each other at " + version); err != nil {
			return err
		}
		var err error
		if m.sums, err = sumsOf(g.folder, m, version); err != nil {
			return fmt.Errorf("%s: %w", m.folder, err)
		}
	}
	if _, err := g.run("reset", "--quiet", "--soft", head); err != nil {
		return err
	}
	return g.commit("Release " + version)
}

// read reads the modules of a workspace, by their paths.
func read(root string, private []string) (map[string]*ours, error) {
	workspace, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", workspace, nil)
	if err != nil {
		return nil, err
	}
	all := map[string]*ours{}
	for _, use := range work.Use {
		folder := filepath.ToSlash(filepath.Clean(use.Path))
		if slices.Contains(private, folder) {
			continue
		}
		path := filepath.Join(root, folder, "go.mod")
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := modfile.Parse(path, text, nil)
		if err != nil {
			return nil, err
		}
		all[file.Module.Mod.Path] = &ours{folder: folder, file: file}
	}
	for _, m := range all {
		for _, r := range m.file.Require {
			if all[r.Mod.Path] != nil {
				m.needs = append(m.needs, r.Mod.Path)
			}
		}
	}
	return all, nil
}

// sorted returns the modules so that each follows those that it requires.
func sorted(all map[string]*ours) []*ours {
	var order []*ours
	var add func(path string)
	add = func(path string) {
		m := all[path]
		if slices.Contains(order, m) {
			return
		}
		for _, needed := range m.needs {
			add(needed)
		}
		order = append(order, m)
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		add(path)
	}
	return order
}

// require has the module's go.mod require the release of the others, and its go.sum know them.
func require(root string, m *ours, all map[string]*ours, version string) error {
	for _, r := range slices.Clone(m.file.Replace) {
		if all[r.Old.Path] == nil {
			return fmt.Errorf("go.mod replaces %s, which no release has", r.Old.Path)
		}
		if err := m.file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
	}
	var sums []string
	for _, path := range m.needs {
		if err := m.file.AddRequire(path, version); err != nil {
			return err
		}
		sums = append(sums, all[path].sums...)
	}
	m.file.Cleanup()
	text, err := m.file.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, m.folder, "go.mod"), text, 0o600); err != nil {
		return err
	}
	if len(sums) == 0 {
		return nil
	}
	known, err := os.ReadFile(filepath.Join(root, m.folder, "go.sum"))
	if err != nil {
		return err
	}
	lines := append(slices.Collect(strings.Lines(string(known))), sums...)
	slices.Sort(lines)
	return os.WriteFile(filepath.Join(root, m.folder, "go.sum"), []byte(strings.Join(lines, "")), 0o600)
}

// sumsOf returns the lines that a go.sum has of a module at HEAD.
func sumsOf(root string, m *ours, version string) ([]string, error) {
	packed, err := os.CreateTemp("", "module")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(packed.Name()) }()
	defer func() { _ = packed.Close() }()
	if err := zip.CreateFromVCS(packed, module.Version{Path: m.path(), Version: version}, root, "HEAD", m.folder); err != nil {
		return nil, err
	}
	whole, err := dirhash.HashZip(packed.Name(), dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	mod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return os.Open(filepath.Join(root, m.folder, "go.mod"))
	})
	if err != nil {
		return nil, err
	}
	return []string{
		fmt.Sprintf("%s %s %s\n", m.path(), version, whole), fmt.Sprintf("%s %s/go.mod %s\n", m.path(), version, mod),
	}, nil
}

// store writes a module as a proxy has it (https://go.dev/ref/mod#goproxy-protocol), from its tag.
func store(root string, m *ours, r Release, proxy string) error {
	escaped, err := module.EscapePath(m.path())
	if err != nil {
		return err
	}
	folder := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := zip.CreateFromVCS(&packed, module.Version{Path: m.path(), Version: r.Version}, root, m.folder+"/"+r.Version, m.folder); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(root, m.folder, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": r.Version, "Time": r.Created.UTC()})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		r.Version + ".zip": packed.Bytes(), r.Version + ".mod": mod, r.Version + ".info": info, "list": []byte(r.Version + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
