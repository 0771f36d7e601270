// Package image puts executables into container images without a container engine: a base of CA
// certificates and a user without rights, and one executable above it, for each platform. The same
// executables make the same bytes.
package image

import (
	"fmt"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// User is who runs in the images: no one whom a host knows.
const User = "65532:65532"

// Release says what all images of one release have in common.
type Release struct {
	// Version is the release's, such as v0.1.0. It is the tag of its images.
	Version string
	// Revision is the commit that it was built from.
	Revision string
	// Source is the address of the repository.
	Source string
	// Created is the time of the commit: an image has no other, so that it can be built again.
	Created time.Time
}

// Executable is one program, built for one platform.
type Executable struct {
	// Path is where its file is.
	Path string
	// Platform is what it was built for, such as linux/arm64.
	Platform v1.Platform
}

// Image is one image for all its platforms.
type Image struct {
	// Name is the image's and its executable's, such as millwright-manager.
	Name string
	// Index names the image of each platform.
	Index v1.ImageIndex
	// Parts are the images of the platforms, in the order of the executables.
	Parts []Part
}

// Part is the image of one platform.
type Part struct {
	Executable
	Image v1.Image
}

// content is a layer, and what it holds, for people.
type content struct {
	layer v1.Layer
	what  string
}

// Build makes the image of a program.
func Build(r Release, name, description string, executables []Executable) (*Image, error) {
	result := &Image{Name: name, Index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex)}
	labels := map[string]string{
		"org.opencontainers.image.title":       name,
		"org.opencontainers.image.description": description,
		"org.opencontainers.image.version":     r.Version,
		"org.opencontainers.image.revision":    r.Revision,
		"org.opencontainers.image.source":      r.Source,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.created":     r.Created.UTC().Format(time.RFC3339),
	}
	base, err := baseLayer()
	if err != nil {
		return nil, fmt.Errorf("base of %s: %w", name, err)
	}
	for _, e := range executables {
		program, err := layer([]file{{name: path.Join("usr/local/bin", name), mode: 0o755, from: e.Path}})
		if err != nil {
			return nil, fmt.Errorf("%s for %s: %w", name, e.Platform, err)
		}
		one, err := assemble(r, name, labels, e.Platform, []content{{base, "CA certificates, users"}, {program, name}})
		if err != nil {
			return nil, fmt.Errorf("%s for %s: %w", name, e.Platform, err)
		}
		result.Parts = append(result.Parts, Part{Executable: e, Image: one})
		result.Index = mutate.AppendManifests(result.Index, mutate.IndexAddendum{
			Add: one, Descriptor: v1.Descriptor{Platform: &e.Platform},
		})
	}
	annotated, ok := mutate.Annotations(result.Index, labels).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("%s: an annotated index is none", name)
	}
	result.Index = annotated
	return result, nil
}

// assemble puts layers, each with what it holds, below a program's settings.
func assemble(r Release, name string, labels map[string]string, p v1.Platform, layers []content) (v1.Image, error) {
	bare := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.ConfigFile(bare, &v1.ConfigFile{
		Architecture: p.Architecture, OS: p.OS, Variant: p.Variant, Created: v1.Time{Time: r.Created},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User: User, Entrypoint: []string{"/usr/local/bin/" + name}, WorkingDir: "/", Labels: labels,
			Env: []string{"PATH=/usr/local/bin", "SSL_CERT_FILE=/" + caBundle},
		},
	})
	if err != nil {
		return nil, err
	}
	added := make([]mutate.Addendum, 0, len(layers))
	for _, l := range layers {
		added = append(added, mutate.Addendum{Layer: l.layer, MediaType: types.OCILayer, History: v1.History{
			Created: v1.Time{Time: r.Created}, CreatedBy: "make images", Comment: l.what,
		}})
	}
	return mutate.Append(img, added...)
}

// Reference is the image's name in a registry.
func (i *Image) Reference(prefix, version string) string {
	return strings.TrimPrefix(strings.TrimSuffix(prefix, "/")+"/"+i.Name+":"+version, "/")
}
