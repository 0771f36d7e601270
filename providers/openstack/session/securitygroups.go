package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
)

// SecurityGroupIDs returns the ids of security groups of names or ids, in the same order, each
// once. One list of the project's groups serves all. DEPENDENCY_NOT_FOUND names field[i] of the
// first that is not there.
func (s *Session) SecurityGroupIDs(ctx context.Context, field string, namesOrIDs []string) ([]string, error) {
	var ids []string
	for i, wanted := range namesOrIDs {
		id, err := s.securityGroupID(ctx, fmt.Sprintf("%s[%d]", field, i), wanted)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// securityGroupID looks among the project's groups first: that they are called "default" in each
// project confuses only administrators, who see those of all. Groups that are shared with the
// project are asked for one by one.
func (s *Session) securityGroupID(ctx context.Context, field, wanted string) (string, error) {
	own, err := s.lookups.securityGroups.get(ctx, s.ProjectID, s.ownSecurityGroups)
	if err != nil {
		return "", lookupError(ctx, err, "look up the security groups", field)
	}
	if found, err := pick("security group", wanted, own); err == nil {
		return found.ID, nil
	}
	others := directory[thing]{kind: "security group", byID: s.securityGroupByID, byName: s.securityGroupsByName}
	found, err := ask(ctx, s.lookups.otherGroups, others, field, wanted)
	return found.ID, err
}

func (s *Session) ownSecurityGroups(ctx context.Context) ([]thing, error) {
	return s.listSecurityGroups(ctx, groups.ListOpts{ProjectID: s.ProjectID})
}

func (s *Session) securityGroupsByName(ctx context.Context, name string) ([]thing, error) {
	return s.listSecurityGroups(ctx, groups.ListOpts{Name: name})
}

func (s *Session) listSecurityGroups(ctx context.Context, by groups.ListOpts) ([]thing, error) {
	pages, err := groups.List(s.Network, by).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	found, err := groups.ExtractGroups(pages)
	var all []thing
	for _, one := range found {
		all = append(all, thing{one.ID, one.Name})
	}
	return all, err
}

func (s *Session) securityGroupByID(ctx context.Context, id string) (thing, error) {
	found, err := one(groups.Get(ctx, s.Network, id).Extract())
	return thing{found.ID, found.Name}, err
}
