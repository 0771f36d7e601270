package driver

import (
	"slices"
	"strings"
	"testing"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
	"github.com/millwright-dev/millwright/providers/openstack/session"
)

// A cloud controller manager with OS_CCM_REGIONAL names the region in a Node's providerID, and
// machine-controller has a form of its own. All are the machine's, whichever is written first.
func TestFormsOfTheProviderID(t *testing.T) {
	t.Parallel()
	for _, regional := range []bool{false, true} {
		w := newWorld(t, openstacksim.Options{})
		w.Driver = New(session.NewPool(session.Options{}), Options{Version: "test", Regional: regional})
		m := w.created("a", nil)
		id := serverIDOf(&driverv1alpha1.GetMachineStatusRequest{ProviderId: m.GetProviderId()})
		want := []string{"openstack:///" + id, "openstack://RegionOne/" + id, "kubermatic://openstack/" + id}
		if regional {
			want[0], want[1] = want[1], want[0]
		}
		if got := append([]string{m.GetProviderId()}, m.GetProviderIdAliases()...); id == "" || !slices.Equal(got, want) {
			t.Errorf("the machine's ids are %q, want %q", got, want)
		}
		if prefix := w.Info().ProviderIDPrefix; !strings.HasPrefix(want[0], prefix) {
			t.Errorf("%s does not begin with %s", want[0], prefix)
		}
		listed := w.list()[0]
		if got := append([]string{listed.GetProviderId()}, listed.GetProviderIdAliases()...); !slices.Equal(got, want) {
			t.Errorf("listed with the ids %q, want %q", got, want)
		}
	}
}

func TestServerIDs(t *testing.T) {
	t.Parallel()
	const id = "0a6b1a3c-7b0e-4a6e-9c0a-000000000001"
	for providerID, want := range map[string]string{
		"openstack:///" + id: id, "openstack://RegionOne/" + id: id, "kubermatic://openstack/" + id: id,
		"openstack://" + id: "", "aws:///" + id: "", id: "",
		"openstack:///nonsense": "", "openstack://a/b/" + id: "", "kubermatic://aws/" + id: "", "": "",
	} {
		if got := serverIDOf(&driverv1alpha1.DeleteMachineRequest{ProviderId: providerID}); got != want {
			t.Errorf("%q: %q, want %q", providerID, got, want)
		}
	}
}

func TestRegionsThatAreNoPartOfAnID(t *testing.T) {
	t.Parallel()
	for region, want := range map[string]bool{"dbl": true, "": false, "a/b": false, "a b": false, "a\n": false} {
		if got := providerIDs(region, "1", true); (len(got) == 3) != want {
			t.Errorf("%q: %q", region, got)
		}
	}
}
