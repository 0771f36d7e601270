// Package pack makes the files of a release: archives, the chart, manifests and what krew reads.
package pack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// File is one file of an archive.
type File struct {
	Name       string
	Content    []byte
	Executable bool
}

// Archive writes a .tar.gz whose bytes depend on the files and the time alone.
func Archive(path string, files []File, at time.Time) error {
	var text bytes.Buffer
	packed, err := gzip.NewWriterLevel(&text, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(packed)
	for _, f := range files {
		header := &tar.Header{Name: f.Name, Size: int64(len(f.Content)), Mode: 0o644, ModTime: at.UTC(), Format: tar.FormatPAX}
		if f.Executable {
			header.Mode = 0o755
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.Content); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o600)
}

// Folder returns the files below a folder in the order of their names, which begin with prefix.
func Folder(folder, prefix string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		files = append(files, File{Name: filepath.ToSlash(filepath.Join(prefix, relative)), Content: content})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", folder, err)
	}
	slices.SortFunc(files, func(a, b File) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return files, nil
}
