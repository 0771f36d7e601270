package session

import (
	"context"
	"fmt"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servergroups"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
)

// Flavor is a size of servers.
type Flavor struct {
	ID, Name string
	VCPUs    int
	RAMMiB   int
	// DiskGB is the root disk's, 0 where that is as large as the image or a volume.
	DiskGB int
	// EphemeralGB is the second disk's.
	EphemeralGB int
	// ExtraSpecs are the operator's, such as the architecture; nil below microversion 2.61 or where
	// policy hides them. Nobody may change it.
	ExtraSpecs map[string]string
}

func (f Flavor) label() thing { return thing{f.ID, f.Name} }

// Flavor returns the flavor of a name or an id. DEPENDENCY_NOT_FOUND names the field.
func (s *Session) Flavor(ctx context.Context, field, nameOrID string) (Flavor, error) {
	return ask(ctx, s.lookups.flavors, directory[Flavor]{kind: "flavor", byID: s.flavorByID, byName: s.allFlavors}, field, nameOrID)
}

func (s *Session) flavorByID(ctx context.Context, id string) (Flavor, error) {
	found, err := one(flavors.Get(ctx, s.Compute, id).Extract())
	return flavorOf(found), err
}

// allFlavors returns them all: Nova filters by no name, and an id can be any word.
func (s *Session) allFlavors(ctx context.Context, _ string) ([]Flavor, error) {
	pages, err := flavors.ListDetail(s.Compute, nil).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	found, err := flavors.ExtractFlavors(pages)
	var all []Flavor
	for _, one := range found {
		all = append(all, flavorOf(one))
	}
	return all, err
}

func flavorOf(f flavors.Flavor) Flavor {
	return Flavor{
		ID: f.ID, Name: f.Name, VCPUs: f.VCPUs, RAMMiB: f.RAM, DiskGB: f.Disk, EphemeralGB: f.Ephemeral, ExtraSpecs: f.ExtraSpecs,
	}
}

// Image is what servers boot from.
type Image struct {
	ID, Name string
	// MinDiskGB and MinRAMMiB are the least that a flavor must have; 0 for no demand.
	MinDiskGB, MinRAMMiB int
	// SizeBytes is what is stored; 0 where the cloud does not tell.
	SizeBytes int64
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
	return Image{
		ID: i.ID, Name: i.Name, MinDiskGB: i.MinDiskGigabytes, MinRAMMiB: i.MinRAMMegabytes, SizeBytes: i.SizeBytes,
		Architecture: architecture(i.Properties), status: i.Status,
	}
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

// ImageNamed returns the image of a name or an id. Only one that is active is there: others are on
// their way, or withdrawn. DEPENDENCY_NOT_FOUND names the field.
func (s *Session) ImageNamed(ctx context.Context, field, nameOrID string) (Image, error) {
	return ask(ctx, s.lookups.images, directory[Image]{kind: "image", byID: s.imageByID, byName: s.imagesByName}, field, nameOrID)
}

// ImageID is ImageNamed's id.
func (s *Session) ImageID(ctx context.Context, field, nameOrID string) (string, error) {
	found, err := s.ImageNamed(ctx, field, nameOrID)
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

// imagesByName returns those that are active, or why there is none.
func (s *Session) imagesByName(ctx context.Context, name string) ([]Image, error) {
	pages, err := images.List(s.Image, images.ListOpts{Name: name}).AllPages(ctx)
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

// ServerGroupID returns the id of a server group of a name or an id. DEPENDENCY_NOT_FOUND names the
// field.
func (s *Session) ServerGroupID(ctx context.Context, field, nameOrID string) (string, error) {
	groups := directory[thing]{kind: "server group", byID: s.serverGroupByID, byName: s.allServerGroups}
	found, err := ask(ctx, s.lookups.serverGroups, groups, field, nameOrID)
	return found.ID, err
}

func (s *Session) serverGroupByID(ctx context.Context, id string) (thing, error) {
	found, err := one(servergroups.Get(ctx, s.Compute, id).Extract())
	return thing{found.ID, found.Name}, err
}

// allServerGroups returns them all: Nova filters by no name.
func (s *Session) allServerGroups(ctx context.Context, _ string) ([]thing, error) {
	pages, err := servergroups.List(s.Compute, nil).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	found, err := servergroups.ExtractServerGroups(pages)
	var all []thing
	for _, one := range found {
		all = append(all, thing{one.ID, one.Name})
	}
	return all, err
}
