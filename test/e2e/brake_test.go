package e2e

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// aloneSet renders a MachineSet that belongs to no MachineDeployment.
func aloneSet(name string, replicas int) string {
	return fmt.Sprintf(`apiVersion: cluster.k8s.io/v1alpha1
kind: MachineSet
metadata:
  name: %[1]s
spec:
  replicas: %[2]d
  selector:
    matchLabels: {pool: %[1]s}
  template:
    metadata:
      labels: {pool: %[1]s}
    spec:
      versions: {kubelet: 1.34.3}
      providerSpec:
        value:
          cloudProvider: fake
          cloudProviderSpec: {flavor: small, image: ubuntu-24.04}
          operatingSystem: ubuntu
`, name, replicas)
}

// Far more machines are there than there may be, since the cloud is slow to delete them: none is
// made on top.
func TestSAFE2_OvershootFreezesCreation(t *testing.T) {
	t.Parallel()
	const before = 8
	u := newUser(t)
	u.apply(aloneSet("shrunk", before))
	u.awaitRunning(before)
	u.delayCalls(4*time.Second, 4*time.Second)
	peak := u.keepExtremes()
	u.kubectl("scale", "machineset", "shrunk", "--replicas=0")
	u.awaitSet(t, "all machines to be on their way out", func(set *clusterv1alpha1.MachineSet) bool {
		return set.Status.ObservedGeneration == set.Generation && set.Status.ReadyReplicas == 0
	})
	u.kubectl("scale", "machineset", "shrunk", "--replicas=2")
	u.kubectl("wait", "machineset/shrunk", "--for=condition=Frozen", "--timeout=60s")
	u.removeFaults()
	u.awaitRunning(2)
	if most, _ := peak(); most > before {
		t.Errorf("%d machines at once: some were made while %d were there", most, before)
	}
	u.awaitSet(t, "no condition Frozen", func(set *clusterv1alpha1.MachineSet) bool {
		return meta.FindStatusCondition(set.Status.Conditions, clusterv1alpha1.ConditionFrozen) == nil
	})
}

// A paused set replaces nothing, makes nothing and changes nothing, and does all of it afterwards.
func TestOPS10_PausedMachineSet(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(aloneSet("braked", 2))
	u.awaitRunning(2)
	before := len(u.vmsEver())
	u.kubectl("annotate", "machineset", "braked", clusterv1alpha1.PausedAnnotation+"=")
	u.kubectl("wait", "machineset/braked", "--for=condition=Paused", "--timeout=60s")
	u.kubectl("delete", "machine", u.machines()[0].Name)
	u.kubectl("scale", "machineset", "braked", "--replicas=4")
	u.kubectl("patch", "machineset", "braked", "--type=merge", `--patch={"spec":{"template":{"metadata":{"labels":{"team":"a"}}}}}`)
	u.awaitSet(t, "the paused set's numbers to go on", func(set *clusterv1alpha1.MachineSet) bool {
		return set.Status.ObservedGeneration == set.Generation && set.Status.Replicas == 1 && set.Status.AvailableReplicas == 1
	})
	if n := len(u.vmsEver()); n != before || u.machine().Labels["team"] != "" {
		t.Errorf("%d VMs were made and the machine has the labels %v while the set was paused", n-before, u.machine().Labels)
	}
	u.kubectl("annotate", "machineset", "braked", clusterv1alpha1.PausedAnnotation+"-")
	u.awaitRunning(4)
	u.kubectl("wait", "machines", "--all", "--for=jsonpath={.metadata.labels.team}=a", "--timeout=60s")
	u.checkOneVMEach()
}
