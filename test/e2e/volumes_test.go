package e2e

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/attacher"
	"github.com/millwright-dev/millwright/test/tier"
)

// storing renders a StatefulSet whose pods have a volume each, and a Deployment of a pod with one
// that stays on its Node.
const storing = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web}]
      topologySpreadConstraints:
      - topologyKey: kubernetes.io/hostname
        maxSkew: 1
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: web}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Gi}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: agent, image: agent}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: agent}}]
`

// A rollout deletes no VM to which a volume of a drained pod is attached, and waits for none of a
// pod that stays. A machine whose volume is never detached goes when the time for that is over, and
// says with what.
func TestLIFE9_VMWaitsForItsVolumes(t *testing.T) {
	tier.Long(t, "it waits for volumes, and for a timeout of theirs")
	t.Parallel()
	const limit = 12 * time.Second // more than it takes until a wait is shown
	within := func(limit string) map[string]string {
		return map[string]string{"kubelet": "1.34.2", "spec": "\n      nodeVolumeDetachTimeout: " + limit}
	}
	u := newUser(t)
	volumes := u.runAttacher()
	said := u.followVolumes()
	u.apply(deployment("stored", 2, nil))
	u.awaitRunning(2)
	u.apply(u.claim("data-web-0") + u.claim("data-web-1") + u.claim("agent") + storing)
	web0, web1, agent := u.volumeOf("data-web-0"), u.volumeOf("data-web-1"), u.volumeOf("agent")
	volumes.awaitAttached(web0, web1, agent)

	uids := u.uidsByNode()
	u.apply(deployment("stored", 2, within("1h")))
	u.rolledOut("stored")
	u.awaitRunning(2)
	detached := u.judgeVolumes(volumes.Story(), uids, agent)
	if detached < 2 {
		t.Errorf("%d volumes were detached before their VMs went, want at least those of two pods", detached)
	}
	if reasons := said(); slices.ContainsFunc(reasons, func(r string) bool { return strings.HasPrefix(r, clusterv1alpha1.ReasonVolumeDetachTimedOut) }) {
		t.Errorf("of the rollout it is said: %q", reasons)
	}

	node := volumes.awaitAttached(web0, web1)[web0]
	volumes.Stick(web0)
	m := u.machineOf(node)
	u.apply(deployment("stored", 2, within(limit.String())))
	u.kubectl("wait", "machine/"+m.Name, "--for=jsonpath={.spec.nodeVolumeDetachTimeout}="+limit.String(), "--timeout=30s")
	began := time.Now()
	u.kubectl("delete", "machine", m.Name, "--timeout=120s")
	if took := u.vmDeletes()[*m.Spec.MachineUID].Sub(began); took < limit {
		t.Errorf("the VM went %s after the deletion, its volumes had %s", took, limit)
	}
	u.awaitMachineEvent(clusterv1alpha1.ReasonVolumeDetachTimedOut, web0+": "+attacher.DetachFailure)
	for _, want := range []string{clusterv1alpha1.ReasonWaitingForVolumes, clusterv1alpha1.ReasonVolumeDetachTimedOut} {
		if reasons := said(); !slices.ContainsFunc(reasons, func(r string) bool {
			return strings.HasPrefix(r, want) && strings.Contains(r, web0+": "+attacher.DetachFailure)
		}) {
			t.Errorf("no %s that names %s and why among %q", want, web0, reasons)
		}
	}
	t.Logf("%d volumes were detached before their VMs went in the rollout; machines said %q", detached, said())
	u.kubectl("delete", "statefulset/web", "deployment/agent")
	u.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
}

// uidsByNode are the uids of the machines there are, by Node.
func (u *user) uidsByNode() map[string]string {
	uids := map[string]string{}
	for _, m := range u.machines() {
		uids[m.Status.NodeRef.Name] = *m.Spec.MachineUID
	}
	return uids
}

// judgeVolumes fails the test for each volume that was attached to the Node of one of these
// machines when its VM was deleted, unless it is the one that stays: that must have been attached.
// It returns how many had been detached.
func (u *user) judgeVolumes(story []attacher.Attachment, uids map[string]string, staying string) (detached int) {
	u.t.Helper()
	deletes := u.vmDeletes()
	for _, a := range story {
		deleted, is := deletes[uids[a.Node]]
		isAttached := a.Detached.IsZero() || is && a.Detached.After(deleted)
		switch {
		case !is:
		case a.Volume == staying && !isAttached:
			u.t.Errorf("the VM of %s went at %s, after %s, which stays, was detached at %s", a.Node, deleted, a.Volume, a.Detached)
		case a.Volume == staying:
		case isAttached:
			u.t.Errorf("the VM of %s was deleted at %s, %s was detached at %v", a.Node, deleted, a.Volume, a.Detached)
		default:
			detached++
		}
	}
	return detached
}

// followVolumes collects what machines say of their volumes, as "Reason Message", until the test
// ends.
func (u *user) followVolumes() func() []string {
	var mu sync.Mutex
	var said []string
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.eachChange(ctx, func(m *clusterv1alpha1.Machine) {
			c := meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionVolumesDetached)
			if c == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if text := c.Reason + " " + c.Message; !slices.Contains(said, text) {
				said = append(said, text)
			}
		})
	}()
	u.t.Cleanup(func() {
		cancel()
		<-done
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(said)
	}
}
