package session

import (
	"context"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servergroups"

	"github.com/millwright-dev/millwright/providers/openstack/spec"
)

// ServerGroupID returns the id of a server group of a name or an id. DEPENDENCY_NOT_FOUND names the
// field.
func (s *Session) ServerGroupID(ctx context.Context, field, nameOrID string) (string, error) {
	groups := directory[thing]{kind: "server group", byID: s.serverGroupByID, list: s.allServerGroups}
	found, err := ask(ctx, s.lookups.serverGroups, groups, field, spec.Reference(nameOrID))
	return found.ID, err
}

func (s *Session) serverGroupByID(ctx context.Context, id string) (thing, error) {
	found, err := one(servergroups.Get(ctx, s.Compute, id).Extract())
	return thing{found.ID, found.Name}, err
}

// allServerGroups returns them all: Nova filters by no name.
func (s *Session) allServerGroups(ctx context.Context, _ spec.Filter) ([]thing, error) {
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
