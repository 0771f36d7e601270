package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// inheriting renders a MachineSet whose template has all it is made from of a MachineClass, and of
// a Cluster.
func inheriting(name string, replicas int) string {
	const own = "        value:\n          cloudProvider: fake\n          cloudProviderSpec: {flavor: small, image: ubuntu-24.04}\n"
	set := aloneSet(name, replicas)
	set = strings.Replace(set, own, "        valueFrom: {machineClass: {name: "+name+"}}\n        value:\n", 1)
	return strings.Replace(set, "    spec:\n", "    spec:\n      clusterRef: {name: "+name+"}\n", 1)
}

// A set whose MachineClass or Cluster is wrong makes one machine and no more. It goes on once that
// is mended, also after the manager was away; a change that mends nothing costs one more machine.
func TestAPI5_API6_AMendedClassOrClusterIsTriedAgain(t *testing.T) {
	tier.Long(t, "it is tried again after longer and longer pauses")
	t.Parallel()
	const class = `{apiVersion: cluster.k8s.io/v1alpha1, kind: MachineClass, metadata: {name: mended}, provider: fake, providerSpec: {%s}}`
	const cluster = `{apiVersion: cluster.k8s.io/v1alpha1, kind: Cluster, metadata: {name: mended}, spec: {providerSpec: {value: {cloudProvider: fake, cloudProviderSpec: {%s}}}}}`
	u := newUser(t)
	u.withoutWebhook()
	u.apply(fmt.Sprintf(class, "flavor: small, colour: red"))
	u.apply(fmt.Sprintf(cluster, "image: ubuntu-24.04, height: tall"))
	u.apply(inheriting("mended", 2))
	held := func(field string, made int64) {
		t.Helper()
		u.awaitSet(t, "TemplateInvalid for "+field, func(set *clusterv1alpha1.MachineSet) bool {
			c := meta.FindStatusCondition(set.Status.Conditions, clusterv1alpha1.ConditionReplicaFailure)
			return c != nil && c.Reason == clusterv1alpha1.ReasonTemplateInvalid && strings.Contains(c.Message, field) && set.Status.NextIndex >= made
		})
	}
	held("colour", 1)
	before := len(u.machines())
	// Half of it is mended: what is tried again is refused for the rest.
	u.apply(fmt.Sprintf(class, "flavor: small"))
	held("height", int64(before)+1)
	u.apply(fmt.Sprintf(cluster, "image: ubuntu-24.04"))
	u.awaitRunning(2)
	u.checkOneVMEach()
	u.kubectl("delete", "machinesets", "--all", "--wait=false")
	u.awaitGone()
	u.kubectl("delete", "machineclass/mended", "cluster/mended", "--ignore-not-found", "--wait=false")
}
