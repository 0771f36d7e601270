package firstboot

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"strconv"

	"sigs.k8s.io/yaml"
)

// cloudConfig is the part of cloud-init's format that leaves files:
// https://cloudinit.readthedocs.io/en/latest/reference/modules.html#write-files
type cloudConfig struct {
	Hostname   string      `json:"hostname"`
	WriteFiles []writeFile `json:"write_files"`
}

type writeFile struct {
	Path        string          `json:"path"`
	Content     string          `json:"content"`
	Encoding    string          `json:"encoding"`
	Permissions json.RawMessage `json:"permissions"`
	Append      bool            `json:"append"`
}

func applyCloudConfig(data []byte) (*Root, error) {
	var config cloudConfig
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("read cloud-config: %w", err)
	}
	root := &Root{Hostname: config.Hostname}
	for i, w := range config.WriteFiles {
		if err := root.writeCloudFile(w); err != nil {
			return nil, fmt.Errorf("write_files[%d]: %s: %w", i, w.Path, err)
		}
	}
	root.adoptHostname()
	return root, nil
}

func (r *Root) writeCloudFile(w writeFile) error {
	content, err := w.decode()
	if err != nil {
		return err
	}
	mode, err := w.mode()
	if err != nil {
		return err
	}
	if w.Append {
		content = r.Files[w.Path].Content + content
	}
	return r.write(w.Path, File{Content: content, Mode: mode})
}

// decode undoes the encodings that the schema of cloud-init allows.
func (w writeFile) decode() (string, error) {
	switch w.Encoding {
	case "", "text/plain":
		return w.Content, nil
	case "b64", "base64":
		content, err := base64.StdEncoding.DecodeString(w.Content)
		if err != nil {
			return "", fmt.Errorf("content: %w", err)
		}
		return string(content), nil
	case "gz+b64", "gz+base64", "gzip+b64", "gzip+base64":
		packed, err := base64.StdEncoding.DecodeString(w.Content)
		if err != nil {
			return "", fmt.Errorf("content: %w", err)
		}
		content, err := gunzip(packed)
		if err != nil {
			return "", fmt.Errorf("content: %w", err)
		}
		return string(content), nil
	default:
		return "", fmt.Errorf("encoding %q: use text/plain, b64 or gz+b64", w.Encoding)
	}
}

// mode reads permissions, which the schema wants to be octal digits in a string.
func (w writeFile) mode() (fs.FileMode, error) {
	if len(w.Permissions) == 0 || string(w.Permissions) == "null" {
		return defaultMode, nil
	}
	var text string
	if err := json.Unmarshal(w.Permissions, &text); err != nil {
		return 0, fmt.Errorf(`permissions %s: use a string, as "0644"`, w.Permissions)
	}
	mode, err := strconv.ParseUint(text, 8, 12)
	if err != nil {
		return 0, fmt.Errorf(`permissions %q: use octal digits, as "0644"`, text)
	}
	return fs.FileMode(mode), nil
}
