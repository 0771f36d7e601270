package driver

import (
	"context"
	"net/url"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/attributestags"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"github.com/millwright-dev/millwright/providers/openstack/spec"
)

// A machine whose image, network, subnet and security group are named by tags and a description,
// with a floating IP that the project has: it is given back.
func TestReferencesOnRealServices(t *testing.T) {
	tag := "millwright-" + uuid.NewString()
	tagged := map[string]any{"tags": []string{tag}}
	more := map[string]any{
		"image": tagged, "network": tagged, "subnet": tagged, "securityGroups": []any{map[string]any{"description": tag}}, "floatingIPs": []string{},
	}
	r := onRealServices(t, more)
	r.tagImage("tiny-raw", tag)
	network, err := r.in.NetworkID(t.Context(), "", "demo-net")
	if err != nil {
		t.Fatal(err)
	}
	subnet, err := r.in.Subnet(t.Context(), "", "demo-subnet", network)
	if err != nil {
		t.Fatal(err)
	}
	for kind, id := range map[string]string{"networks": network, "subnets": subnet.ID} {
		if err := attributestags.Add(t.Context(), r.in.Network, kind, id, tag).ExtractErr(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = attributestags.Delete(context.WithoutCancel(t.Context()), r.in.Network, kind, id, tag).ExtractErr()
		})
	}
	group, err := groups.Create(t.Context(), r.in.Network, groups.CreateOpts{Name: tag, Description: tag}).Extract()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = groups.Delete(context.WithoutCancel(t.Context()), r.in.Network, group.ID).ExtractErr() })
	free := r.allocate("public")
	more["floatingIPs"] = []string{free.FloatingIP}
	r.respecify(more)

	if _, err := r.settled(); err != nil {
		t.Fatal(err)
	}
	id := r.running()
	pages, err := ports.List(r.in.Network, ports.ListOpts{DeviceID: id}).AllPages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found, err := ports.ExtractPorts(pages)
	if err != nil || len(found) != 1 || found[0].NetworkID != network || found[0].FixedIPs[0].SubnetID != subnet.ID || !slices.Equal(found[0].SecurityGroups, []string{group.ID}) {
		t.Fatalf("the port is %+v, %v", found, err)
	}
	if now, err := floatingips.Get(t.Context(), r.in.Network, free.ID).Extract(); err != nil || now.PortID != found[0].ID {
		t.Errorf("the floating IP is %+v, %v", now, err)
	}
	r.remove()
	left, err := floatingIPsListed(t.Context(), r.in, url.Values{"floating_ip_address": {free.FloatingIP}})
	if err != nil || len(left) != 1 || left[0].PortID != "" {
		t.Errorf("the floating IP is %+v, %v", left, err)
	}
}

// tagImage gives an image one tag, until the test is over.
func (r *realServices) tagImage(name spec.Reference, tag string) {
	r.Helper()
	id, err := r.in.ImageID(r.Context(), "", name)
	if err != nil {
		r.Fatal(err)
	}
	o := r.operator()
	set := func(ctx context.Context, tags []string) error {
		return images.Update(ctx, o.image, id, images.UpdateOpts{images.ReplaceImageTags{NewTags: tags}}).Err
	}
	if err := set(r.Context(), []string{tag}); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = set(context.WithoutCancel(r.Context()), []string{}) })
}

// allocate makes a floating IP of the project that is nobody's, until the test is over.
func (r *realServices) allocate(pool string) *floatingips.FloatingIP {
	r.Helper()
	network, err := r.in.ExternalNetworkID(r.Context(), "", pool)
	if err != nil {
		r.Fatal(err)
	}
	made, err := floatingips.Create(r.Context(), r.in.Network, floatingips.CreateOpts{FloatingNetworkID: network, Description: "the user's"}).Extract()
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		_ = floatingips.Delete(context.WithoutCancel(r.Context()), r.in.Network, made.ID).ExtractErr()
	})
	return made
}
