package driver

import (
	"context"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
)

// plan is what OpenStack is asked for to make a machine.
type plan struct {
	server  body
	image   string
	ports   []portPlan
	volumes []volumePlan
}

// planner looks up what a spec names.
type planner struct {
	cloud *session.Session
	// owner is the machine; it is empty where a spec is only checked.
	owner ownership.Owner
	want  spec.Spec
	// userData and requestTags are the request's; they are empty where a spec is only checked.
	userData    []byte
	requestTags map[string]string
}

// plan looks up all of it; an error names the first field whose object is not there.
func (p planner) plan(ctx context.Context) (*plan, error) {
	image, err := p.cloud.ImageID(ctx, "image", p.want.Image)
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
		func() error { _, err := p.flavor(ctx); return err },
		func() error { _, err := p.cloud.ImageID(ctx, "image", p.want.Image); return err },
	}
	if p.want.ServerGroup != "" {
		lookups = append(lookups, func() error {
			_, err := p.cloud.ServerGroupID(ctx, p.want.ServerGroupField, p.want.ServerGroup)
			return err
		})
	}
	if p.want.FloatingIPPool != "" {
		lookups = append(lookups, func() error {
			_, err := p.cloud.ExternalNetworkID(ctx, "floatingIpPool", p.want.FloatingIPPool)
			return err
		})
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
