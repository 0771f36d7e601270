package session

import (
	"context"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"

	"github.com/millwright-dev/millwright/providers/openstack/spec"
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
}

func (f Flavor) label() thing { return thing{f.ID, f.Name} }

// Flavor returns the flavor of a name or an id. DEPENDENCY_NOT_FOUND names the field.
func (s *Session) Flavor(ctx context.Context, field, nameOrID string) (Flavor, error) {
	return ask(ctx, s.lookups.flavors, directory[Flavor]{kind: "flavor", byID: s.flavorByID, list: s.allFlavors}, field, spec.Reference(nameOrID))
}

func (s *Session) flavorByID(ctx context.Context, id string) (Flavor, error) {
	found, err := one(flavors.Get(ctx, s.Compute, id).Extract())
	return flavorOf(found), err
}

// allFlavors returns them all: Nova filters by no name, and an id can be any word.
func (s *Session) allFlavors(ctx context.Context, _ spec.Filter) ([]Flavor, error) {
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
	return Flavor{ID: f.ID, Name: f.Name, VCPUs: f.VCPUs, RAMMiB: f.RAM, DiskGB: f.Disk, EphemeralGB: f.Ephemeral}
}
