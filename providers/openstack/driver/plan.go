package driver

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

// plan is what OpenStack is asked for to make a machine.
type plan struct {
	server  body
	image   string
	ports   []portPlan
	volumes []volumePlan
}

// portPlan is a port as it shall be.
type portPlan struct {
	want spec.Port
	mac  string
	// anyMAC says that the network is known to forbid choosing the address.
	anyMAC         bool
	network        string
	fixedIPs       []ports.IP
	securityGroups []string
}

// planner looks up what a spec names.
type planner struct {
	machineScope
	want spec.Spec
	// userData and requestTags are the request's; they are empty where a spec is only checked.
	userData    []byte
	requestTags map[string]string
}

// plan looks up all of it; an error names the first field whose object is not there.
func (p planner) plan(ctx context.Context) (*plan, error) {
	image, err := p.ImageID(ctx, "image", p.want.Image)
	if err != nil {
		return nil, err
	}
	server, err := p.server(ctx, image)
	if err != nil {
		return nil, err
	}
	found := &plan{server: server, image: image, volumes: p.volumes(image)}
	for i := range p.want.Ports {
		planned, err := p.port(ctx, i)
		if err != nil {
			return nil, err
		}
		found.ports = append(found.ports, planned)
	}
	return found, nil
}

// missing looks up all that a spec names, and returns what is not there.
func (p planner) missing(ctx context.Context) ([]*driverv1alpha1.FieldViolation, error) {
	lookups := []func() error{
		func() error { _, err := p.Flavor(ctx, "flavor", p.want.Flavor); return err },
		func() error { _, err := p.ImageID(ctx, "image", p.want.Image); return err },
	}
	if p.want.ServerGroup != "" {
		lookups = append(lookups, func() error { _, err := p.ServerGroupID(ctx, p.want.ServerGroupField, p.want.ServerGroup); return err })
	}
	if p.want.FloatingIPPool != "" {
		lookups = append(lookups, func() error { _, err := p.ExternalNetworkID(ctx, "floatingIpPool", p.want.FloatingIPPool); return err })
	}
	for i := range p.want.Ports {
		lookups = append(lookups, func() error { _, err := p.port(ctx, i); return err })
	}
	var found []*driverv1alpha1.FieldViolation
	for _, lookup := range lookups {
		err := lookup()
		if err == nil {
			continue
		}
		fields := violations(err)
		if len(fields) == 0 {
			return nil, err
		}
		found = append(found, fields...)
	}
	return found, nil
}

// port looks up what a port of the spec names.
func (p planner) port(ctx context.Context, index int) (portPlan, error) {
	planned := portPlan{want: p.want.Ports[index], mac: p.MAC(index)}
	if planned.want.ID != "" {
		return planned, nil
	}
	if err := p.findNetwork(ctx, &planned); err != nil {
		return planned, err
	}
	if planned.want.DisablePortSecurity {
		planned.securityGroups = []string{}
		return planned, nil
	}
	names, field := planned.want.SecurityGroups, planned.want.At+"securityGroups"
	if names == nil {
		names, field = p.want.SecurityGroups, "securityGroups"
	}
	if len(names) == 0 {
		return planned, nil
	}
	var err error
	planned.securityGroups, err = p.SecurityGroupIDs(ctx, field, names)
	return planned, err
}

// findNetwork finds the network and the subnets of a port. Where the spec names the network, it
// comes first: subnets are looked for within it.
func (p planner) findNetwork(ctx context.Context, planned *portPlan) error {
	want := planned.want
	if want.Network != "" {
		var err error
		if planned.network, err = p.NetworkID(ctx, want.NetworkField, want.Network); err != nil {
			return err
		}
	}
	for i, fixed := range want.FixedIPs {
		ip := ports.IP{IPAddress: fixed.IPAddress}
		if fixed.Subnet != "" {
			subnet, err := p.subnet(ctx, planned, fmt.Sprintf("%sfixedIPs[%d].subnet", want.At, i), fixed.Subnet)
			if err != nil {
				return err
			}
			ip.SubnetID = subnet
		}
		planned.fixedIPs = append(planned.fixedIPs, ip)
	}
	if want.Subnet != "" {
		subnet, err := p.subnet(ctx, planned, want.SubnetField, want.Subnet)
		if err != nil {
			return err
		}
		planned.fixedIPs = []ports.IP{{SubnetID: subnet}}
	}
	if planned.network != "" {
		return nil
	}
	var err error
	planned.network, err = p.DefaultNetworkID(ctx, want.NetworkField)
	return err
}

// subnet returns the id of a subnet of the port's network; where that is not known yet, it is the
// subnet's.
func (p planner) subnet(ctx context.Context, planned *portPlan, field, name string) (string, error) {
	subnet, err := p.Subnet(ctx, field, name, planned.network)
	if err != nil {
		return "", err
	}
	if planned.network != "" && planned.network != subnet.NetworkID {
		return "", sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND,
			"The subnet "+name+" is not in the port's network.", sdk.WithField(field, "Name a subnet of the same network."))
	}
	planned.network = subnet.NetworkID
	return subnet.ID, nil
}

// body is what Nova is asked for.
type body struct {
	servers.CreateOpts
	description string
	networks    []servers.Network
	hints       hints
	flavorName  string
}

// ToServerCreateMap implements servers.CreateOptsBuilder, which knows no description.
func (b body) ToServerCreateMap() (map[string]any, error) {
	b.CreateOpts.Networks = b.networks
	request, err := b.CreateOpts.ToServerCreateMap()
	if err != nil {
		return nil, fmt.Errorf("describe the server: %w", err)
	}
	if inner, is := request["server"].(map[string]any); is {
		inner["description"] = b.description
	}
	return request, nil
}

// hints are scheduler hints as the user wrote them.
type hints map[string]any

// ToSchedulerHintsMap implements servers.SchedulerHintOptsBuilder: what goes beside the server in
// the request.
func (h hints) ToSchedulerHintsMap() (map[string]any, error) {
	if len(h) == 0 {
		return nil, nil
	}
	return map[string]any{"os:scheduler_hints": map[string]any(h)}, nil
}

// server looks up what the spec names of the server.
func (p planner) server(ctx context.Context, image string) (body, error) {
	flavor, err := p.Flavor(ctx, "flavor", p.want.Flavor)
	if err != nil {
		return body{}, err
	}
	b := body{
		CreateOpts: servers.CreateOpts{
			Name: p.ServerName(), FlavorRef: flavor.ID, ImageRef: image, AvailabilityZone: p.want.AvailabilityZone,
			// Base64 here: gophercloud would take user data that happens to look like base64 for
			// what it is not.
			UserData: []byte(base64.StdEncoding.EncodeToString(p.userData)),
			Metadata: p.metadata(), ConfigDrive: p.want.ConfigDrive, Tags: p.tags(),
		},
		description: p.Description(), flavorName: flavor.Name, hints: maps.Clone(p.want.SchedulerHints),
	}
	if p.want.RootDisk != nil {
		b.ImageRef = ""
	}
	if p.want.ServerGroup == "" {
		return b, nil
	}
	group, err := p.ServerGroupID(ctx, p.want.ServerGroupField, p.want.ServerGroup)
	if err != nil {
		return body{}, err
	}
	if b.hints == nil {
		b.hints = hints{}
	}
	b.hints["group"] = group
	return b, nil
}

// metadata is the users' and the request's, under the marks.
func (p planner) metadata() map[string]string {
	all := map[string]string{}
	for key, value := range p.requestTags {
		all[metadataKey(key)] = value[:min(len(value), maxMetadata)]
	}
	maps.Copy(all, p.want.Metadata)
	maps.Copy(all, p.Metadata())
	return all
}

// maxMetadata is the longest key and the longest value of metadata that Nova takes.
const maxMetadata = 255

// metadataKey is a key of the request's tags as Nova takes it: an underscore stands for what it
// refuses, such as '/'.
func metadataKey(key string) string {
	plain := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_:. ", r)) {
			return r
		}
		return '_'
	}, key)
	return plain[:min(len(plain), maxMetadata)]
}

// tags are the users' and the marks.
func (p planner) tags() []string {
	return append(slices.Clone(p.want.Tags), ownership.ClusterTag(p.Cluster), ownership.MachineTag(p.UID))
}
