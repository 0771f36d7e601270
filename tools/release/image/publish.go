package image

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Published is an image with what is said about it.
type Published struct {
	*Image
	Referrers []v1.Image
}

// WriteLayout writes images into a folder in the OCI layout. Each bears its reference, which
// `ctr images import` and others read. A folder that is there is replaced.
func WriteLayout(folder, prefix, version string, images []Published) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	for _, i := range images {
		reference := i.Reference(prefix, version)
		if err := path.AppendIndex(i.Index, layout.WithAnnotations(map[string]string{
			"org.opencontainers.image.ref.name": reference,
			"io.containerd.image.name":          reference,
		})); err != nil {
			return fmt.Errorf("%s: %w", reference, err)
		}
		for _, r := range i.Referrers {
			if err := path.AppendImage(r); err != nil {
				return fmt.Errorf("what is said about %s: %w", reference, err)
			}
		}
	}
	return nil
}

// Archive packs a folder into one file. Its entries stand in the order of their names, and bear no
// time and no owner.
func Archive(folder, target string) error {
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(out)
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		return pack(archive, folder, path, entry)
	})
	if err == nil {
		err = archive.Close()
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}

func pack(archive *tar.Writer, folder, path string, entry fs.DirEntry) error {
	relative, err := filepath.Rel(folder, path)
	if err != nil {
		return err
	}
	if entry.IsDir() {
		return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: relative + "/", Mode: 0o755, ModTime: time.Unix(0, 0)})
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: relative, Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	_, err = io.Copy(archive, file)
	return err
}

// Push puts an image, and what is said about it, into a registry. Credentials are those of
// `docker login`. It returns the reference with the digest.
func Push(ctx context.Context, prefix, version string, i Published) (string, error) {
	tag, err := name.NewTag(i.Reference(prefix, version), name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("--push: %w", err)
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if err := remote.WriteIndex(tag, i.Index, options...); err != nil {
		return "", fmt.Errorf("%s: %w", tag, err)
	}
	for _, r := range i.Referrers {
		digest, err := r.Digest()
		if err != nil {
			return "", err
		}
		if err := remote.Write(tag.Digest(digest.String()), r, options...); err != nil {
			return "", fmt.Errorf("what is said about %s: %w", tag, err)
		}
	}
	digest, err := i.Index.Digest()
	if err != nil {
		return "", err
	}
	return tag.Digest(digest.String()).String(), nil
}
