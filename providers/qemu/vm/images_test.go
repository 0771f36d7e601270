package vm

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

func TestImages(t *testing.T) {
	dir := t.TempDir()
	header := append([]byte("QFI\xfb"), make([]byte, 508)...)
	binary.BigEndian.PutUint64(header[24:], 10<<30)
	for name, content := range map[string][]byte{"disk.qcow2": header, "disk.raw": make([]byte, 4096), "tiny": []byte("QFI\xfb")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]Image{
		"disk.qcow2": {Format: "qcow2", Bytes: 10 << 30}, "disk.raw": {Format: "raw", Bytes: 4096}, "tiny": {Format: "raw", Bytes: 4},
	} {
		want.Path = filepath.Join(dir, name)
		if got, err := Images(dir).Image(name); err != nil || got != want {
			t.Errorf("%s is %+v (%v), want %+v", name, got, err, want)
		}
	}
}

// Whatever a name is, nothing outside the folder is read.
func FuzzImages(f *testing.F) {
	const secret = "opensesame"
	f.Add("../outside")
	f.Add("/etc/passwd")
	f.Add("link/../../outside")
	f.Fuzz(func(t *testing.T, name string) {
		top := t.TempDir()
		dir := filepath.Join(top, "images")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, "outside"), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("..", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		file, _, err := Images(dir).open(name)
		if err != nil {
			return
		}
		defer file.Close()
		content := make([]byte, len(secret))
		if n, _ := file.Read(content); bytes.Equal(content[:n], []byte(secret)) {
			t.Errorf("%q leads out of the folder", name)
		}
	})
}
