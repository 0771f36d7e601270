package driver

import (
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/attributestags"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
)

// What a spec names by tags or a description is found as if it was named.
func TestWhatIsNamedByTags(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{World: openstacksim.DefaultWorld().With(openstacksim.World{
		Images: []openstacksim.Image{{Name: "noble-1", Tags: []string{"golden"}}, {Name: "noble-2", Tags: []string{"golden", "current"}}},
	})})
	in := w.session("")
	network, err := in.NetworkID(t.Context(), "", "demo-net")
	if err != nil {
		t.Fatal(err)
	}
	if err := attributestags.ReplaceAll(t.Context(), in.Network, "networks", network, attributestags.ReplaceAllOpts{Tags: []string{"workers", "blue"}}).Err; err != nil {
		t.Fatal(err)
	}
	if err := groups.Create(t.Context(), in.Network, groups.CreateOpts{Name: "g", Description: "of workers"}).Err; err != nil {
		t.Fatal(err)
	}
	w.created("one", map[string]any{
		"image": map[string]any{"tags": []string{"golden", "current"}}, "network": map[string]any{"tags": []string{"workers"}},
		"securityGroups": []any{map[string]any{"description": "of workers"}},
	})
	w.leavesNothing("one")
	for field, reference := range map[string]any{
		"image": map[string]any{"tags": []string{"golden"}}, "network": map[string]any{"tags": []string{"green"}},
	} {
		_, err := w.create("two", map[string]any{field: reference})
		w.refused(field+" that is not one thing", err, driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND)
	}
}
