package session

import (
	"context"
	"fmt"

	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"github.com/millwright-dev/millwright/providers/openstack/spec"
)

// Image is what servers boot from.
type Image struct {
	ID, Name string
	// Architecture is that of the image's machines in Glance's words, such as aarch64; empty where
	// it says none.
	Architecture string
	status       images.ImageStatus
}

func (i Image) label() thing { return thing{i.ID, i.Name} }

// usable says why servers cannot be made from an image (yet).
func (i Image) usable() error {
	if i.status == images.ImageStatusActive {
		return nil
	}
	return &unfound{fmt.Sprintf("The image %q is not active: it is %s.", i.Name, i.status)}
}

func imageOf(i images.Image) Image {
	return Image{ID: i.ID, Name: i.Name, Architecture: architecture(i.Properties), status: i.Status}
}

// architecture reads the property that Nova's scheduler obeys, or the older one:
// https://docs.openstack.org/glance/latest/admin/useful-image-properties.html.
func architecture(properties map[string]any) string {
	for _, name := range []string{"hw_architecture", "architecture"} {
		if told, _ := properties[name].(string); told != "" {
			return told
		}
	}
	return ""
}

// FindImage returns the image that is meant. Only one that is active is there: others are on their
// way, or withdrawn. DEPENDENCY_NOT_FOUND names the field.
func (s *Session) FindImage(ctx context.Context, field string, wanted spec.Reference) (Image, error) {
	return ask(ctx, s.lookups.images, directory[Image]{kind: "image", byID: s.imageByID, list: s.activeImages}, field, wanted)
}

// ImageID is FindImage's id.
func (s *Session) ImageID(ctx context.Context, field string, wanted spec.Reference) (string, error) {
	found, err := s.FindImage(ctx, field, wanted)
	return found.ID, err
}

func (s *Session) imageByID(ctx context.Context, id string) (Image, error) {
	found, err := one(images.Get(ctx, s.Image, id).Extract())
	if err != nil {
		return Image{}, err
	}
	image := imageOf(found)
	return image, image.usable()
}

// activeImages returns those that are active, or why there is none.
func (s *Session) activeImages(ctx context.Context, by spec.Filter) ([]Image, error) {
	pages, err := images.List(s.Image, images.ListOpts{Name: by.Name, Tags: by.Tags}).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	found, err := images.ExtractImages(pages)
	if err != nil {
		return nil, err
	}
	var active []Image
	var flaw error
	for _, one := range found {
		image := imageOf(one)
		if err := image.usable(); err != nil {
			flaw = err
			continue
		}
		active = append(active, image)
	}
	if len(active) > 0 {
		return active, nil
	}
	return nil, flaw
}
