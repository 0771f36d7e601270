package firstboot

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
)

// ignitionVersions are those that Ignition reads which knows 3.4.0:
// https://coreos.github.io/ignition/specs/
var ignitionVersions = []string{"3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0"}

// unitDir is where Ignition puts units.
const unitDir = "/etc/systemd/system"

// maxMode is the largest mode that Ignition takes.
const maxMode = 0o7777

// ignition is the part of a configuration that leaves files.
type ignition struct {
	Ignition struct {
		Version string `json:"version"`
		Config  struct {
			Replace *resource  `json:"replace"`
			Merge   []resource `json:"merge"`
		} `json:"config"`
	} `json:"ignition"`
	Storage struct {
		Files []ignitionFile `json:"files"`
	} `json:"storage"`
	Systemd struct {
		Units []unit `json:"units"`
	} `json:"systemd"`
	Passwd struct {
		Users []user `json:"users"`
	} `json:"passwd"`
}

type ignitionFile struct {
	Path     string     `json:"path"`
	Mode     *int       `json:"mode"`
	Contents resource   `json:"contents"`
	Append   []resource `json:"append"`
}

type resource struct {
	Source      string `json:"source"`
	Compression string `json:"compression"`
}

type unit struct {
	Name     string   `json:"name"`
	Contents string   `json:"contents"`
	Dropins  []dropin `json:"dropins"`
}

type dropin struct {
	Name     string `json:"name"`
	Contents string `json:"contents"`
}

type user struct {
	Name              string   `json:"name"`
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys"`
}

func applyIgnition(data []byte) (*Root, error) {
	config, err := parseIgnition(data)
	if err != nil {
		return nil, err
	}
	if replace := config.Ignition.Config.Replace; replace != nil {
		replacement, err := replace.read()
		if err != nil {
			return nil, fmt.Errorf("ignition.config.replace: %w", err)
		}
		if config, err = parseIgnition([]byte(replacement)); err != nil {
			return nil, fmt.Errorf("ignition.config.replace: %w", err)
		}
		if config.Ignition.Config.Replace != nil {
			return nil, errors.New("ignition.config.replace: a replacement that replaces itself is not simulated")
		}
	}
	return config.lay()
}

// parseIgnition reads a configuration and refuses what its validation refuses.
func parseIgnition(data []byte) (*ignition, error) {
	var config ignition
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("read Ignition configuration: %w", err)
	}
	if version := config.Ignition.Version; !slices.Contains(ignitionVersions, version) {
		return nil, fmt.Errorf("ignition.version %q: use one of %s", version, strings.Join(ignitionVersions, ", "))
	}
	if len(config.Ignition.Config.Merge) > 0 {
		return nil, errors.New("ignition.config.merge: is not simulated")
	}
	for _, u := range config.Passwd.Users {
		for i, key := range u.SSHAuthorizedKeys {
			if slices.Contains(u.SSHAuthorizedKeys[:i], key) {
				return nil, fmt.Errorf("passwd.users: %s: sshAuthorizedKeys[%d]: stands there twice", u.Name, i)
			}
		}
	}
	return &config, nil
}

// lay writes files and units. A path that stands there twice is an error to Ignition.
func (c *ignition) lay() (*Root, error) {
	root := &Root{}
	for i, f := range c.Storage.Files {
		if _, twice := root.Files[path.Clean(f.Path)]; twice {
			return nil, fmt.Errorf("storage.files[%d]: %s: stands there twice", i, f.Path)
		}
		if err := root.writeIgnitionFile(f); err != nil {
			return nil, fmt.Errorf("storage.files[%d]: %s: %w", i, f.Path, err)
		}
	}
	for i, u := range c.Systemd.Units {
		if err := root.writeUnit(u); err != nil {
			return nil, fmt.Errorf("systemd.units[%d]: %w", i, err)
		}
	}
	root.adoptHostname()
	return root, nil
}

func (r *Root) writeIgnitionFile(f ignitionFile) error {
	mode := defaultMode
	if f.Mode != nil {
		if *f.Mode < 0 || *f.Mode > maxMode {
			return fmt.Errorf("mode %d: use 0 to %d, which is 07777 in octal", *f.Mode, maxMode)
		}
		mode = fs.FileMode(*f.Mode)
	}
	var content strings.Builder
	for _, part := range append([]resource{f.Contents}, f.Append...) {
		text, err := part.read()
		if err != nil {
			return fmt.Errorf("contents: %w", err)
		}
		content.WriteString(text)
	}
	return r.write(f.Path, File{Content: content.String(), Mode: mode})
}

func (r *Root) writeUnit(u unit) error {
	if path.Ext(u.Name) == "" || path.Base(u.Name) != u.Name {
		return fmt.Errorf("name %q: use the name of a unit, as kubelet.service", u.Name)
	}
	if u.Contents != "" {
		if err := r.write(path.Join(unitDir, u.Name), File{Content: u.Contents, Mode: defaultMode}); err != nil {
			return err
		}
	}
	for _, d := range u.Dropins {
		if path.Ext(d.Name) != ".conf" || path.Base(d.Name) != d.Name {
			return fmt.Errorf("%s: dropin %q: use a name that ends with .conf", u.Name, d.Name)
		}
		if err := r.write(path.Join(unitDir, u.Name+".d", d.Name), File{Content: d.Contents, Mode: defaultMode}); err != nil {
			return err
		}
	}
	return nil
}

// read returns what a resource holds. Only data URLs do so without a network.
func (r resource) read() (string, error) {
	if r.Source == "" {
		return "", nil
	}
	content, err := readDataURL(r.Source)
	if err != nil {
		return "", err
	}
	switch r.Compression {
	case "":
		return string(content), nil
	case "gzip":
		unpacked, err := gunzip(content)
		return string(unpacked), err
	default:
		return "", fmt.Errorf("compression %q: use gzip or none", r.Compression)
	}
}

// readDataURL decodes a URL of RFC 2397.
func readDataURL(source string) ([]byte, error) {
	rest, found := strings.CutPrefix(source, "data:")
	if !found {
		scheme, _, _ := strings.Cut(source, ":")
		return nil, fmt.Errorf("source of scheme %q: is not simulated, only data URLs are", scheme)
	}
	kind, data, found := strings.Cut(rest, ",")
	if !found {
		return nil, errors.New("source: a data URL has a comma before its data")
	}
	text, err := url.PathUnescape(data)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	if !strings.HasSuffix(kind, ";base64") {
		return []byte(text), nil
	}
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	return content, nil
}
