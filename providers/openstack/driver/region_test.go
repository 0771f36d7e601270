package driver

import (
	"slices"
	"testing"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
)

// A cloud controller manager with OS_CCM_REGIONAL names the region in a Node's providerID: both
// forms are the machine's.
func TestBothFormsOfTheProviderID(t *testing.T) {
	w := newWorld(t, openstacksim.Options{})
	if _, err := w.create("a", nil); err != nil {
		t.Fatal(err)
	}
	m, err := w.status("a")
	if err != nil {
		t.Fatal(err)
	}
	id := serverIDOf(&driverv1alpha1.GetMachineStatusRequest{ProviderId: m.GetProviderId()})
	if want := []string{"openstack://RegionOne/" + id}; id == "" || !slices.Equal(m.GetProviderIdAliases(), want) {
		t.Errorf("the machine is %v, want aliases %q", m, want)
	}
	if listed := w.list()[0]; !slices.Equal(listed.GetProviderIdAliases(), m.GetProviderIdAliases()) {
		t.Errorf("listed as %v", listed)
	}
}

func TestServerIDs(t *testing.T) {
	const id = "0a6b1a3c-7b0e-4a6e-9c0a-000000000001"
	for providerID, want := range map[string]string{
		"openstack:///" + id: id, "openstack://RegionOne/" + id: id, "openstack://" + id: "", "aws:///" + id: "", id: "",
		"openstack:///nonsense": "", "openstack://a/b/" + id: "", "": "",
	} {
		if got := serverIDOf(&driverv1alpha1.DeleteMachineRequest{ProviderId: providerID}); got != want {
			t.Errorf("%q: %q, want %q", providerID, got, want)
		}
	}
}

func TestRegionalIDs(t *testing.T) {
	for region, want := range map[string][]string{"dbl": {"openstack://dbl/1"}, "": nil, "a/b": nil, "a b": nil, "a\n": nil} {
		if got := regionalIDs(region, "1"); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", region, got, want)
		}
	}
}
