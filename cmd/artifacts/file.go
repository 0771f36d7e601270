package artifacts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// readable is for a mirror's files: whoever serves them may be another user.
const readable, searchable = 0o644, 0o755

// place writes a file and gives it its name only when it is whole and has the SHA-256 sum that is
// wanted. Empty: any.
func place(name string, content io.Reader, want string) error {
	if err := os.MkdirAll(filepath.Dir(name), searchable); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".part-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, hash), content)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	if sum := hex.EncodeToString(hash.Sum(nil)); want != "" && sum != want {
		return fmt.Errorf("it has SHA-256 %s, not %s", sum, want)
	}
	if err := os.Chmod(file.Name(), readable); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

// sumOf returns the SHA-256 sum of a file.
func sumOf(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
