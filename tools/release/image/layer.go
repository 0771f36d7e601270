package image

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"os"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// caBundle is where the images have their CA certificates.
const caBundle = "etc/ssl/certs/ca-certificates.crt"

// file is what a layer has at one path: content, or what the file at from holds.
type file struct {
	name    string
	mode    int64
	content []byte
	from    string
}

// baseLayer is the same in every image, so that a Node stores it once.
func baseLayer() (v1.Layer, error) {
	return layer([]file{
		{name: "etc/group", mode: 0o644, content: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: "etc/passwd", mode: 0o644, content: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{name: caBundle, mode: 0o644, content: certificates()},
	})
}

// certificates are the roots that Mozilla trusts, as PEM. Roots that it trusts only for some
// certificates are left out: PEM cannot say which.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return out.Bytes()
}

// layer packs files, and the folders that they are in. Nothing in it depends on when or by whom it
// is made.
func layer(files []file) (v1.Layer, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	made := map[string]bool{".": true}
	for _, f := range files {
		if err := folders(archive, path.Dir(f.name), made); err != nil {
			return nil, err
		}
		content := f.content
		if f.from != "" {
			var err error
			if content, err = os.ReadFile(f.from); err != nil {
				return nil, err
			}
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	raw := out.Bytes()
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// folders writes a folder and those above it, each once.
func folders(archive *tar.Writer, name string, made map[string]bool) error {
	if made[name] {
		return nil
	}
	if err := folders(archive, path.Dir(name), made); err != nil {
		return err
	}
	made[name] = true
	return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: time.Unix(0, 0)})
}
