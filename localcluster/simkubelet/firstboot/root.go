// Package firstboot lays out what cloud-init and Ignition lay out from user data, in memory: the
// files of a machine and its host name. It runs nothing.
//
// It refuses what the validators of the real ones refuse: cloud-init's schema, which cloud-init
// itself only warns by, and Ignition, which does not let such a machine boot.
package firstboot

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// ErrUnknownFormat says that user data is neither a cloud-config nor an Ignition configuration. A
// real machine boots, and does nothing about it.
var ErrUnknownFormat = errors.New("user data is neither a cloud-config nor an Ignition configuration")

// maxUnpacked bounds what a compressed part becomes, in bytes: far more than any user data needs.
const maxUnpacked = 16 << 20

// defaultMode is what both give a file that asks for no mode.
const defaultMode fs.FileMode = 0o644

// File is a file on the machine.
type File struct {
	Content string
	Mode    fs.FileMode
}

// Root is what the machine's disk has after its first boot, beyond its image.
type Root struct {
	// Hostname is empty where the user data sets none: the cloud's metadata names the machine.
	Hostname string
	// Files are the files by their absolute, clean path; systemd units are below
	// /etc/systemd/system.
	Files map[string]File
}

// Apply lays out user data: a cloud-config, which may be compressed by gzip as a whole, or an
// Ignition configuration of version 3. The error is ErrUnknownFormat or says what a real machine
// would not take.
func Apply(userData []byte) (*Root, error) {
	data, err := unpackCloudConfig(userData)
	if err != nil {
		return nil, err
	}
	switch first, _, _ := bytes.Cut(data, []byte("\n")); {
	case string(bytes.TrimSpace(first)) == "#cloud-config":
		return applyCloudConfig(data)
	case bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")):
		return applyIgnition(data)
	default:
		return nil, ErrUnknownFormat
	}
}

// unpackCloudConfig unpacks what begins as gzip does. Ignition takes no compressed configuration.
func unpackCloudConfig(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	unpacked, err := gunzip(data)
	if err != nil {
		return nil, fmt.Errorf("unpack user data: %w", err)
	}
	if !bytes.HasPrefix(unpacked, []byte("#cloud-config")) {
		return nil, ErrUnknownFormat
	}
	return unpacked, nil
}

func gunzip(data []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	unpacked, err := io.ReadAll(io.LimitReader(reader, maxUnpacked+1))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	if len(unpacked) > maxUnpacked {
		return nil, fmt.Errorf("gzip: more than %d bytes", maxUnpacked)
	}
	return unpacked, nil
}

// write puts a file there; a later one overwrites an earlier one.
func (r *Root) write(name string, f File) error {
	if !path.IsAbs(name) {
		return fmt.Errorf("file %q: the path must be absolute", name)
	}
	if r.Files == nil {
		r.Files = map[string]File{}
	}
	r.Files[path.Clean(name)] = f
	return nil
}

// Read returns the content of a file. A relative name is below dir, as where a file names another.
// The error names the path that is not there.
func (r *Root) Read(dir, name string) (string, error) {
	if !path.IsAbs(name) {
		name = path.Join(dir, name)
	}
	f, found := r.Files[path.Clean(name)]
	if !found {
		return "", fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return f.Content, nil
}

// hostnameFile is where systemd takes the host name from.
const hostnameFile = "/etc/hostname"

// adoptHostname takes the host name from its file where nothing else has set it.
func (r *Root) adoptHostname() {
	if r.Hostname == "" {
		r.Hostname = strings.TrimSpace(r.Files[hostnameFile].Content)
	}
}
