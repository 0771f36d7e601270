package image

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The media types of what is said about an image.
const (
	SPDX   types.MediaType = "application/spdx+json"
	InToto types.MediaType = "application/vnd.in-toto+json"
)

// Referrer is an artifact that says something about an image, which registries list beside it.
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#listing-referrers
func Referrer(subject partial.Describable, kind types.MediaType, text []byte) (v1.Image, error) {
	about, err := partial.Descriptor(subject)
	if err != nil {
		return nil, err
	}
	bare := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), kind)
	artifact, err := mutate.AppendLayers(bare, static.NewLayer(text, kind))
	if err != nil {
		return nil, err
	}
	referring, ok := mutate.Subject(artifact, *about).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("an image with a subject is none: %T", referring)
	}
	return referring, nil
}
