package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/millwright-dev/millwright/test/tier"
)

// regionWithIDs is the region of the simulator whose cloud controller manager runs with
// OS_CCM_REGIONAL=true.
const regionWithIDs = "RegionOne"

// Where a Node's providerID names the region it is its server's all the same: the Machine joins,
// has the Node's form of the id, and goes with its Node. Other tests see to the form without the
// region.
func TestLIFE4_OpenStackNodesNameTheRegion(t *testing.T) {
	tier.Long(t, "the fake cloud's test shows how ids are matched")
	t.Parallel()
	const machines = 2
	onSimulator(t)
	u := newOpenStackUser(t)
	before := len(u.inventory(t.Context()))
	manifest := strings.NewReplacer("region: dbl", "region: "+regionWithIDs, "availabilityZone: dbl1", "availabilityZone: nova").
		Replace(u.onMetaKube("regional", machines, "\n      nodeStartupTimeout: 30s"))
	u.apply(manifest)
	u.awaitRunning(machines)
	uids := u.uids()
	for _, m := range u.machines() {
		node, err := u.nodeOf(m.Name)
		if err != nil {
			t.Fatal(err)
		}
		if want := "openstack://" + regionWithIDs + "/"; !strings.HasPrefix(node.Spec.ProviderID, want) || *m.Spec.ProviderID != node.Spec.ProviderID {
			t.Errorf("machine %s has the providerID %s, its Node %s, want both to begin with %s", m.Name, *m.Spec.ProviderID, node.Spec.ProviderID, want)
		}
	}
	u.checkOneVMEach()
	u.kubectl("scale", "machinedeployment", "regional", "--replicas=1")
	u.awaitRunning(1)
	if after := u.uids(); !slices.Contains(uids, after[0]) {
		t.Errorf("the machine was replaced: of %v there is %v", uids, after)
	}
	u.kubectl("delete", "machinedeployment", "regional")
	u.awaitGone()
	if n := len(u.inventory(t.Context())); n != before {
		t.Errorf("there are %d things in the project, want %d: %v", n, before, u.inventory(t.Context()))
	}
}
