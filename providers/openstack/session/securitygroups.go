package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"

	"github.com/millwright-dev/millwright/providers/openstack/spec"
)

// SecurityGroupIDs returns the ids of the security groups that are meant, in the same order, each
// once. One list of the project's groups serves all that are named. DEPENDENCY_NOT_FOUND names
// field[i] of the first that is not there.
func (s *Session) SecurityGroupIDs(ctx context.Context, field string, references []spec.Reference) ([]string, error) {
	var ids []string
	for i, wanted := range references {
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
// project, and those that a filter is for, are asked for one by one.
func (s *Session) securityGroupID(ctx context.Context, field string, wanted spec.Reference) (string, error) {
	if by := wanted.Filter(); by.Description == "" && len(by.Tags) == 0 {
		own, err := s.lookups.securityGroups.get(ctx, s.ProjectID, s.ownSecurityGroups)
		if err != nil {
			return "", lookupError(ctx, err, "look up the security groups", field)
		}
		if found, err := pick("security group", by, own); err == nil {
			return found.ID, nil
		}
	}
	others := directory[thing]{kind: "security group", byID: s.securityGroupByID, list: s.securityGroupsBy}
	found, err := ask(ctx, s.lookups.otherGroups, others, field, wanted)
	return found.ID, err
}

func (s *Session) ownSecurityGroups(ctx context.Context) ([]thing, error) {
	return s.listSecurityGroups(ctx, groups.ListOpts{ProjectID: s.ProjectID})
}

func (s *Session) securityGroupsBy(ctx context.Context, by spec.Filter) ([]thing, error) {
	return s.listSecurityGroups(ctx, groups.ListOpts{Name: by.Name, Description: by.Description, Tags: tagsQuery(by)})
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
