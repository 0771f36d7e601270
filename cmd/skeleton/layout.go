package skeleton

import (
	_ "embed" // for the README
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/millwright-dev/millwright/proto/contract"
	"github.com/millwright-dev/millwright/providers/example"
)

// Skeleton is a driver to begin with.
type Skeleton struct {
	// Name is the driver's: the cloudProvider that selects it.
	Name string
	// Dir is its folder. It is made, unless it is there and empty.
	Dir string
	// Module is the path of its Go module.
	Module string
	// Checkout is the checkout of Millwright from which it gets the modules that are not tagged
	// yet.
	Checkout string
}

// Write lays the driver out. Where anything is wrong with the skeleton nothing is written. The
// error names the argument or the flag of `millwright driver init` and says what to do.
func (s Skeleton) Write() error {
	if err := s.complete(); err != nil {
		return err
	}
	files, err := s.files()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	for name, content := range files {
		//nolint:gosec // sources are for others to read
		if err := os.WriteFile(filepath.Join(s.Dir, name), content, 0o644); err != nil {
			return fmt.Errorf("--dir: %w", err)
		}
	}
	return nil
}

// complete makes the paths absolute, and says all that is wrong; of a wrong name only that, since
// the rest may follow from it.
func (s *Skeleton) complete() error {
	if !contract.ValidDriverName(s.Name) {
		return fmt.Errorf("NAME: %q cannot name a driver: give at most 63 small letters, digits and dashes, a letter first and no dash last, such as my-cloud", s.Name)
	}
	var errs []error
	if err := module.CheckImportPath(s.Module); err != nil {
		errs = append(errs, fmt.Errorf("--module: %w; give a path such as example.com/millwright-driver-my-cloud", err))
	}
	var err error
	if s.Checkout, err = filepath.Abs(s.Checkout); err != nil || !holds(s.Checkout, "sdk") {
		errs = append(errs, fmt.Errorf("--millwright: %s is no checkout of Millwright: give the folder that has sdk and conformance in it", s.Checkout))
	}
	if s.Dir, err = filepath.Abs(s.Dir); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	return errors.Join(append(errs, s.room())...)
}

// room says why the driver cannot be laid out in its folder.
func (s *Skeleton) room() error {
	if above := FindCheckout(s.Dir); above != "" {
		return fmt.Errorf("--dir: %s lies in the checkout of Millwright, whose go.work would rule it: give a folder outside, such as %s",
			s.Dir, filepath.Join(filepath.Dir(above), filepath.Base(s.Dir)))
	}
	found, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--dir: %w: give a folder that is new or empty", err)
	}
	if len(found) > 0 {
		return fmt.Errorf("--dir: %s is not empty: give a folder that is new or empty", s.Dir)
	}
	return nil
}

// readme is filled in without text/template: with that Go's linker drops no method that nobody
// calls, and the command grows by half.
//
//go:embed README.md.tmpl
var readme string

// files returns what is written, by name.
func (s *Skeleton) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	rename := strings.NewReplacer("millwright-driver-example", "millwright-driver-"+s.Name, `"example"`, `"`+s.Name+`"`)
	err := fs.WalkDir(example.Sources, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := example.Sources.ReadFile(name)
		switch path.Base(name) {
		case "go.sum":
		case "go.mod":
			if content, err = s.goMod(content); err != nil {
				err = fmt.Errorf("go.mod: %w", err)
			}
		default:
			content = []byte(rename.Replace(string(content)))
		}
		files[path.Base(name)] = content
		return err
	})
	if err != nil {
		return nil, err
	}
	files["README.md"] = []byte(strings.NewReplacer("{{name}}", s.Name, "{{checkout}}", s.Checkout).Replace(readme))
	return files, nil
}

// goMod returns the example's go.mod for this module, with the paths of the checkout.
func (s *Skeleton) goMod(of []byte) ([]byte, error) {
	file, err := modfile.Parse("go.mod", of, nil)
	if err != nil {
		return nil, err
	}
	if err := file.AddModuleStmt(s.Module); err != nil {
		return nil, err
	}
	for _, replace := range slices.Clone(file.Replace) {
		folder := strings.TrimPrefix(replace.Old.Path, modules)
		if err := file.AddReplace(replace.Old.Path, "", filepath.Join(s.Checkout, folder), ""); err != nil {
			return nil, err
		}
	}
	return file.Format()
}
