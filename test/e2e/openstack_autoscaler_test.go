package e2e

import (
	"strings"
	"testing"
)

// What a flavor of OpenStack offers is told to an autoscaler.
func TestOPS3_OpenStackFlavorsAreToldToAutoscalers(t *testing.T) {
	t.Parallel()
	u := newOpenStackUser(t)
	u.apply(autoscaled(strings.Replace(u.onMetaKube("zero", 0, ""), "metadata: {name: zero}", "metadata:\n  name: zero", 1), ""))
	u.awaitCapacity("zero", "1", "2048Mi")
	if got := u.annotation("zero", "labels"); !strings.Contains(got, "topology.kubernetes.io/zone=dbl1") || !strings.Contains(got, "node.kubernetes.io/instance-type=m1.small") {
		t.Errorf("its Nodes' labels are told as %q", got)
	}
}
