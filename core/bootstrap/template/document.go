package template

import (
	"errors"
	"fmt"
	"strconv"
	"text/template/parse"

	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Bounds: of a document and of all that it becomes, of what one content becomes, and of how many
// files and units there are.
const (
	maxDocument = 512 << 10
	maxContent  = 256 << 10
	maxContents = 256
)

var errDocument = fmt.Errorf("the files and units become longer than %d bytes together", maxDocument)

// File is a file as it is rendered.
type File struct {
	Path, Content string
	// Mode are its permissions. Zero: none were said.
	Mode uint32
}

// Unit is a unit of systemd as it is rendered.
type Unit struct {
	Name, Content string
	Enabled       bool
}

// Document is what Parse has read. It is not changed any more.
type Document struct {
	files []fileTemplate
	units []unitTemplate
}

type fileTemplate struct {
	File
	body body
}

type unitTemplate struct {
	Unit
	body body
}

// body is a content; without a format it is taken as it is.
type body struct {
	format format
	tree   *parse.Tree
}

// written is a document as it is written.
type written struct {
	Files []struct {
		Path        string `json:"path"`
		Permissions string `json:"permissions"`
		Format      string `json:"format"`
		Content     string `json:"content"`
	} `json:"files"`
	Units []struct {
		Name    string `json:"name"`
		Enabled bool   `json:"enabled"`
		Content string `json:"content"`
	} `json:"units"`
}

// Parse reads a document, strictly. The error names the path of the file or the name of the unit.
func Parse(text string) (*Document, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("has %d bytes, at most %d are possible", len(text), maxDocument)
	}
	if err := checkYAML(text); err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	var w written
	strict, err := json.UnmarshalStrict(asJSON, &w)
	if err = errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	if n := len(w.Files) + len(w.Units); n > maxContents {
		return nil, fmt.Errorf("has %d files and units, at most %d are possible", n, maxContents)
	}
	d := &Document{}
	for i, f := range w.Files {
		t := fileTemplate{File: File{Path: f.Path, Content: f.Content}}
		if t.Mode, err = ParseMode(f.Permissions); err != nil {
			return nil, fmt.Errorf("files[%d] %s: permissions: %w", i, f.Path, err)
		}
		if t.body, err = newBody(f.Format, f.Content); err != nil {
			return nil, fmt.Errorf("files[%d] %s: %w", i, f.Path, err)
		}
		d.files = append(d.files, t)
	}
	for i, u := range w.Units {
		t := unitTemplate{Unit: Unit{Name: u.Name, Content: u.Content, Enabled: u.Enabled}}
		if t.body, err = newBody("unit", u.Content); err != nil {
			return nil, fmt.Errorf("units[%d] %s: %w", i, u.Name, err)
		}
		d.units = append(d.units, t)
	}
	return d, nil
}

// ParseMode reads permissions as they are written, in octal. Of none it is zero.
func ParseMode(text string) (uint32, error) {
	if text == "" {
		return 0, nil
	}
	mode, err := strconv.ParseUint(text, 8, 12)
	if err != nil {
		return 0, errors.New("must be octal, such as 0644")
	}
	return uint32(mode), nil
}

func newBody(name, content string) (body, error) {
	if name == "" {
		return body{}, nil
	}
	f, known := formats[name]
	if !known {
		return body{}, fmt.Errorf("format: %q is none: use sh, unit, toml or yaml, or leave it out for text that is no template", name)
	}
	tree, err := parseActions(content)
	return body{format: f, tree: tree}, err
}

// Render fills in the document. Values are maps, lists, texts, numbers and truth values. The error
// names the path of the file or the name of the unit, and tells no value.
func (d *Document) Render(values map[string]any) (files []File, units []Unit, err error) {
	left := newBudget()
	for i, t := range d.files {
		if t.Content, err = t.body.render(t.Content, values, left); err != nil {
			return nil, nil, fmt.Errorf("files[%d] %s: %w", i, t.Path, err)
		}
		files = append(files, t.File)
	}
	for i, t := range d.units {
		if t.Content, err = t.body.render(t.Content, values, left); err != nil {
			return nil, nil, fmt.Errorf("units[%d] %s: %w", i, t.Name, err)
		}
		units = append(units, t.Unit)
	}
	return files, units, nil
}

func (b body) render(content string, values map[string]any, left *budget) (string, error) {
	if b.tree == nil {
		return content, left.print(len(content))
	}
	out, err := evaluate(b.tree, values, left)
	if err != nil {
		return "", err
	}
	filled, quoted, err := out.fill(b.format)
	if err != nil {
		return "", err
	}
	if err := left.print(len(filled)); err != nil || len(quoted) == 0 {
		return filled, err
	}
	return filled, b.format.check(out.mark(), quoted, filled)
}
