package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"

	"github.com/millwright-dev/millwright/providers/openstack/spec"
)

// network is what matters of one.
type network struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Project  string `json:"project_id"`
	Shared   bool   `json:"shared"`
	External bool   `json:"router:external"`
}

func (n network) label() thing { return thing{n.ID, n.Name} }

// tagsQuery is how Neutron is asked for what has all tags of a filter.
func tagsQuery(by spec.Filter) string { return strings.Join(by.Tags, ",") }

// NetworkID returns the id of the network that is meant. DEPENDENCY_NOT_FOUND names the field.
func (s *Session) NetworkID(ctx context.Context, field string, wanted spec.Reference) (string, error) {
	found, err := ask(ctx, s.lookups.networks, directory[network]{
		kind: "network", byID: s.networkByID,
		list: func(ctx context.Context, by spec.Filter) ([]network, error) {
			return s.listNetworks(ctx, networks.ListOpts{Name: by.Name, Description: by.Description, Tags: tagsQuery(by)})
		},
	}, field, wanted)
	return found.ID, err
}

// ExternalNetworkID returns the id of an external network, which floating IPs come from, of a name
// or an id. DEPENDENCY_NOT_FOUND names the field.
func (s *Session) ExternalNetworkID(ctx context.Context, field, nameOrID string) (string, error) {
	found, err := ask(ctx, s.lookups.externals, directory[network]{
		kind: "external network",
		byID: func(ctx context.Context, id string) (network, error) {
			found, err := s.networkByID(ctx, id)
			if err == nil && !found.External {
				err = &unfound{fmt.Sprintf("The network %q is not external: it has no floating IPs.", found.Name)}
			}
			return found, err
		},
		list: func(ctx context.Context, by spec.Filter) ([]network, error) {
			return s.listNetworks(ctx, external.ListOptsExt{ListOptsBuilder: networks.ListOpts{Name: by.Name}, External: new(true)})
		},
	}, field, spec.Reference(nameOrID))
	return found.ID, err
}

// DefaultNetworkID returns the id of the only network that the project has and that is not
// external. Where it has none of its own, it is the only one that is shared with it. Otherwise
// DEPENDENCY_NOT_FOUND names the field, and the networks to choose from.
func (s *Session) DefaultNetworkID(ctx context.Context, field string) (string, error) {
	const onlyOne = ""
	found, err := s.lookups.networks.get(ctx, onlyOne, func(ctx context.Context) (network, error) {
		all, err := s.listNetworks(ctx, external.ListOptsExt{ListOptsBuilder: networks.ListOpts{}, External: new(false)})
		if err != nil {
			return network{}, err
		}
		return onlyNetwork(all, s.ProjectID)
	})
	return found.ID, lookupError(ctx, err, "look up the project's network", field)
}

// onlyNetwork returns the one that a project means where it names none. An administrator sees those
// of other projects as well.
func onlyNetwork(all []network, project string) (network, error) {
	choice := slices.DeleteFunc(slices.Clone(all), func(n network) bool { return n.Project != project })
	if len(choice) == 0 {
		choice = slices.DeleteFunc(slices.Clone(all), func(n network) bool { return !n.Shared })
	}
	if len(choice) == 1 {
		return choice[0], nil
	}
	if len(choice) == 0 {
		return network{}, &unfound{"The project has no network: name one."}
	}
	var names []string
	for _, n := range choice {
		names = append(names, fmt.Sprintf("%q", n.Name))
	}
	slices.Sort(names)
	const most = 10
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return network{}, &unfound{fmt.Sprintf("The project has %d networks: name one of %s.", len(choice), strings.Join(names, ", "))}
}

func (s *Session) networkByID(ctx context.Context, id string) (network, error) {
	var found network
	err := networks.Get(ctx, s.Network, id).ExtractInto(&found)
	return found, err
}

func (s *Session) listNetworks(ctx context.Context, by networks.ListOptsBuilder) ([]network, error) {
	pages, err := networks.List(s.Network, by).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	var all []network
	err = networks.ExtractNetworksInto(pages, &all)
	return all, err
}

// Subnet is a part of a network.
type Subnet struct{ ID, Name, NetworkID string }

func (n Subnet) label() thing { return thing{n.ID, n.Name} }

// Subnet returns the subnet that is meant. It is looked for within the network of an id, where one
// is given: many clouds call a subnet of each network alike. One of an id is found in whichever
// network it is. DEPENDENCY_NOT_FOUND names the field.
func (s *Session) Subnet(ctx context.Context, field string, wanted spec.Reference, networkID string) (Subnet, error) {
	return ask(ctx, s.lookups.subnets, directory[Subnet]{
		kind: "subnet", within: networkID + "/", byID: s.subnetByID,
		list: func(ctx context.Context, by spec.Filter) ([]Subnet, error) { return s.listSubnets(ctx, by, networkID) },
	}, field, wanted)
}

func (s *Session) subnetByID(ctx context.Context, id string) (Subnet, error) {
	found, err := one(subnets.Get(ctx, s.Network, id).Extract())
	return subnetOf(found), err
}

func (s *Session) listSubnets(ctx context.Context, by spec.Filter, networkID string) ([]Subnet, error) {
	pages, err := subnets.List(s.Network, subnets.ListOpts{
		Name: by.Name, Description: by.Description, Tags: tagsQuery(by), NetworkID: networkID,
	}).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	found, err := subnets.ExtractSubnets(pages)
	var all []Subnet
	for _, one := range found {
		all = append(all, subnetOf(one))
	}
	return all, err
}

func subnetOf(n subnets.Subnet) Subnet { return Subnet{ID: n.ID, Name: n.Name, NetworkID: n.NetworkID} }
