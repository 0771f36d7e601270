package vm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Images is the folder whose files users may name in a spec.
type Images string

// Image is a disk image that VMs begin as. It is never written.
type Image struct {
	Path   string
	Format string // as QEMU calls it
	Bytes  int64  // of the disk in it
}

// open opens a file below the folder. A link that leads out of it is refused.
func (i Images) open(name string) (*os.File, int64, error) {
	root, err := os.OpenRoot(string(i))
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()           //nolint:errcheck // nothing was written to it
	info, err := root.Stat(name) // first: to open a pipe takes until somebody writes to it
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, 0, err
	}
	file, err := root.Open(name)
	return file, info.Size(), err
}

// qcow2 is how a disk image of this format begins. At the byte 24 stands the size of its disk:
// https://www.qemu.org/docs/master/interop/qcow2.html
var qcow2 = []byte("QFI\xfb")

// Image reads what is known of a disk image. What is not qcow2 is raw.
func (i Images) Image(name string) (Image, error) {
	file, size, err := i.open(name)
	if err != nil {
		return Image{}, err
	}
	defer file.Close()
	image := Image{Path: filepath.Join(string(i), name), Format: "raw", Bytes: size}
	header := make([]byte, 32)
	n, err := file.ReadAt(header, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Image{}, fmt.Errorf("read %s: %w", name, err)
	}
	if n == len(header) && bytes.HasPrefix(header, qcow2) {
		image.Format, image.Bytes = "qcow2", int64(binary.BigEndian.Uint64(header[24:]))
	}
	return image, nil
}
