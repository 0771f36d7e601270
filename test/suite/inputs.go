package suite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// module is what the import paths of all packages of this repository begin with.
const module = "github.com/millwright-dev/millwright"

// Tree is a checkout of the repository.
type Tree struct {
	root string
	// files are all that git knows or would add, as slash-separated paths below root, sorted.
	files []string
	// owners maps a folder to whether it holds a Go package.
	owners map[string]bool
	// listed maps the packages of a part to what `go list` said of them.
	listed map[string]string
}

// Open reads which files there are below root, the top of a checkout.
func Open(ctx context.Context, root string) (*Tree, error) {
	out, err := run(ctx, root, "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	t := &Tree{root: root, owners: map[string]bool{}, listed: map[string]string{}}
	for file := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, file)); err != nil {
			continue // removed, and git has not been told
		}
		t.files = append(t.files, file)
		if strings.HasSuffix(file, ".go") {
			t.owners[path.Dir(file)] = true
		}
	}
	slices.Sort(t.files)
	t.files = slices.Compact(t.files)
	return t, nil
}

// Inputs are what a part is made from. The zero value contains no file.
type Inputs struct {
	tree *Tree
	// folders are those of Go packages.
	folders map[string]bool
	// modules are go.mod and go.sum of these packages' modules.
	modules map[string]bool
	// files are the patterns of all other inputs.
	files []*regexp.Regexp
}

// Inputs returns what part is made from: the folders of its packages and of all that these import
// or test with in this repository, the requirements of their modules, and its Files.
func (t *Tree) Inputs(ctx context.Context, part Part) (Inputs, error) {
	in := Inputs{tree: t, folders: map[string]bool{}, modules: map[string]bool{}}
	for _, pattern := range part.Files {
		in.files = append(in.files, compile(pattern))
	}
	if len(part.Packages) == 0 {
		return in, nil
	}
	out, err := t.list(ctx, part.Packages)
	if err != nil {
		return Inputs{}, fmt.Errorf("part %s: %w", part.Name, err)
	}
	for line := range strings.Lines(out) {
		folder, module, isOurs := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !isOurs {
			continue
		}
		in.folders[t.relative(folder)] = true
		for _, name := range []string{"go.mod", "go.sum"} {
			in.modules[path.Join(t.relative(module), name)] = true
		}
	}
	return in, nil
}

// list returns a line for each package of this repository that the packages of these patterns, or
// their tests, are made from: its folder and that of its module.
func (t *Tree) list(ctx context.Context, patterns []string) (string, error) {
	key := strings.Join(patterns, " ")
	if out, ok := t.listed[key]; ok {
		return out, nil
	}
	const format = `{{with .Module}}{{if .Main}}{{$.Dir}}{{"\t"}}{{.Dir}}{{end}}{{end}}`
	args := []string{"list", "-deps", "-test", "-f", format}
	for _, pattern := range patterns {
		args = append(args, module+strings.TrimPrefix(pattern, "."))
	}
	out, err := run(ctx, t.root, "go", args...)
	if err == nil {
		t.listed[key] = out
	}
	return out, err
}

func (t *Tree) relative(dir string) string {
	below, err := filepath.Rel(t.root, dir)
	if err != nil {
		return dir
	}
	return filepath.ToSlash(below)
}

// Contains says whether file is an input. A file that is not Go belongs to the package in the
// nearest folder above it: what is embedded and what tests read lies there.
func (in Inputs) Contains(file string) bool {
	if in.modules[file] || slices.ContainsFunc(in.files, func(p *regexp.Regexp) bool { return p.MatchString(file) }) {
		return true
	}
	if in.tree == nil || strings.HasSuffix(file, "/go.mod") || strings.HasSuffix(file, "/go.sum") {
		return false
	}
	for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
		if in.tree.owners[folder] || in.folders[folder] {
			return in.folders[folder]
		}
	}
	return false
}

// Hash returns a value that changes with the content, the name or the mode of any input, and with
// the version of Go.
func (in Inputs) Hash() (string, error) {
	all := sha256.New()
	_, _ = fmt.Fprintln(all, runtime.Version())
	for _, file := range in.tree.files {
		if !in.Contains(file) {
			continue
		}
		content, mode, err := in.tree.read(file)
		if err != nil {
			return "", fmt.Errorf("read an input: %w", err)
		}
		_, _ = fmt.Fprintf(all, "%s %v %x\n", file, mode, sha256.Sum256(content))
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// read returns a file's content and mode; of a link, where it leads.
func (t *Tree) read(file string) ([]byte, fs.FileMode, error) {
	name := filepath.Join(t.root, filepath.FromSlash(file))
	info, err := os.Lstat(name)
	if err != nil {
		return nil, 0, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(name)
		return []byte(target), info.Mode(), err
	}
	content, err := os.ReadFile(name)
	return content, info.Mode(), err
}

// Changed returns the files that differ between the working tree and where this branch left base.
func (t *Tree) Changed(ctx context.Context, base string) ([]string, error) {
	left, err := run(ctx, t.root, "git", "merge-base", base, "HEAD")
	if err != nil {
		return nil, fmt.Errorf("find where this branch left %s (BASE= names another one): %w", base, err)
	}
	changed, err := run(ctx, t.root, "git", "diff", "--name-only", "--no-renames", "-z", strings.TrimSpace(left))
	if err != nil {
		return nil, err
	}
	added, err := run(ctx, t.root, "git", "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	files := strings.Split(changed+added, "\x00")
	return slices.DeleteFunc(files, func(file string) bool { return file == "" }), nil
}

// Selected returns the parts that have one of the changed files among their inputs.
func (t *Tree) Selected(ctx context.Context, parts []Part, changed []string) ([]Part, error) {
	var selected []Part
	for _, part := range parts {
		in, err := t.Inputs(ctx, part)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(changed, in.Contains) {
			selected = append(selected, part)
		}
	}
	return selected, nil
}

// compile makes a regular expression of a pattern of [Part.Files].
func compile(pattern string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(pattern)
	quoted = strings.ReplaceAll(quoted, `\*\*/`, `(?:.*/)?`)
	quoted = strings.ReplaceAll(quoted, `\*\*`, `.*`)
	quoted = strings.ReplaceAll(quoted, `\*`, `[^/]*`)
	return regexp.MustCompile("^" + quoted + "$")
}

// run returns what a command prints on its standard output.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	var out, errs bytes.Buffer
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Stdout, command.Stderr = dir, &out, &errs
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, args[0], err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}
