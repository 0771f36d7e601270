package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/attacher"
	"github.com/millwright-dev/millwright/test/audit"
	"github.com/millwright-dev/millwright/test/tier"
)

// annotated renders a deployment whose Machines carry an annotation.
func annotated(manifest, key, value string) string {
	return strings.Replace(manifest, "    spec:\n      versions", fmt.Sprintf("      annotations: {%s: %s}\n    spec:\n      versions", key, value), 1)
}

// Where the template asks for it, pods with volumes leave one after another: each is evicted once
// the one before is gone and its volume is detached. All others leave at once. A volume that cannot
// be detached holds the next pod up, and the Machine names it, until the annotation is taken away.
func TestLIFE10_PodsWithVolumesGoOneAfterAnother(t *testing.T) {
	tier.Long(t, "it waits for volumes, and for timeouts of theirs")
	t.Parallel()
	u := newUser(t)
	volumes := u.runAttacher()
	u.apply(annotated(deployment("stored", 1, map[string]string{"spec": "\n      nodeVolumeDetachTimeout: 15s"}),
		clusterv1alpha1.DrainPodsWithVolumesAnnotation, clusterv1alpha1.DrainOneAtATime))
	u.awaitRunning(1)
	claims := []string{"data-web-0", "data-web-1", "data-web-2"}
	stored := make([]string, 0, len(claims))
	for _, claim := range claims {
		u.apply(u.claim(claim))
		stored = append(stored, u.volumeOf(claim))
	}
	agent := u.volumeOf("agent")
	u.apply(u.claim("agent") + strings.Replace(storing, "replicas: 2", "replicas: 3", 1) + "---\n" + application(2, 0))
	u.kubectl("rollout", "status", "deployment/app", "--timeout=60s")
	old := volumes.awaitAttached(append(stored, agent)...)[agent]

	uids := u.uidsByNode()
	u.kubectl("delete", "machine", u.machine().Name, "--timeout=120s")
	u.awaitRunning(1)
	u.judgeTurns(volumes.Story(), old)
	if n := u.judgeVolumes(volumes.Story(), uids, agent); n != len(stored) {
		t.Errorf("%d volumes were detached before their VM went, want %d", n, len(stored))
	}

	m := u.machine()
	u.awaitAttachedTo(m.Status.NodeRef.Name, volumes, stored...)
	volumes.Stick(stored[0])
	u.kubectl("delete", "machine", m.Name, "--wait=false")
	u.awaitDrainSays(m.Name, "the next one waits for volumes to be detached: "+stored[0]+": "+attacher.DetachFailure)
	if on := u.podsOn(m.Status.NodeRef.Name, "web"); !slices.Equal(on, []string{"web-1", "web-2"}) {
		t.Errorf("while a volume cannot be detached, the pods on its Node that stay are %v", on)
	}
	u.kubectl("annotate", "machine", m.Name, clusterv1alpha1.DrainPodsWithVolumesAnnotation+"-")
	u.kubectl("wait", "machine/"+m.Name, "--for=delete", "--timeout=120s")
	u.awaitMachineEvent(clusterv1alpha1.ReasonVolumeDetachTimedOut, stored[0]+": "+attacher.DetachFailure)
	u.awaitRunning(1)
	u.kubectl("delete", "statefulset/web", "deployment/agent", "deployment/app", "poddisruptionbudget/app")
	u.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
}

// judgeTurns fails the test for each pod with a volume that was evicted from a Node before the
// volumes of all those before it were detached, and for each other pod that had to wait for them.
func (u *user) judgeTurns(story []attacher.Attachment, node string) {
	u.t.Helper()
	requests, err := audit.NewLog(u.AuditLogPath()).Next()
	if err != nil {
		u.t.Fatal(err)
	}
	var turns, others []audit.Request
	for _, r := range requests {
		switch {
		case r.Resource != "pods/eviction" || r.Namespace != u.namespace || r.Received.Before(u.since):
		case strings.HasPrefix(r.Name, "web-"):
			turns = append(turns, r)
		default:
			others = append(others, r)
		}
	}
	slices.SortFunc(turns, func(a, b audit.Request) int { return a.Received.Compare(b.Received) })
	if len(turns) != 3 || len(others) < 2 {
		u.t.Fatalf("%d evictions of pods with volumes and %d of others, want 3 and at least 2", len(turns), len(others))
	}
	for i, next := range turns[1:] {
		before := u.volumeOf("data-" + turns[i].Name)
		at := slices.IndexFunc(story, func(a attacher.Attachment) bool { return a.Volume == before && a.Node == node })
		if at < 0 || story[at].Detached.IsZero() || story[at].Detached.After(next.Received) {
			u.t.Errorf("%s was evicted at %s, before the volume of %s was detached: %+v", next.Name, next.Received, turns[i].Name, story)
		}
	}
	for _, other := range others {
		if other.Received.After(turns[1].Received) {
			u.t.Errorf("%s, which has no volume, was evicted at %s, after two that have some", other.Name, other.Received)
		}
	}
}

// awaitDrainSays waits until the condition Drained of a Machine says text.
func (u *user) awaitDrainSays(machine, text string) {
	u.t.Helper()
	eventually(u.t, "the drain to say "+text, func(context.Context) error {
		m, found := u.find(machine)
		if !found {
			return errors.New("the machine is gone")
		}
		if c := meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionDrained); c == nil || !strings.Contains(c.Message, text) {
			return errors.New(words(m.Status.Conditions))
		}
		return nil
	})
}

// awaitAttachedTo waits until these volumes are attached to a Node, and to no other one any more.
func (u *user) awaitAttachedTo(node string, by *userVolumes, volumes ...string) {
	u.t.Helper()
	eventually(u.t, "the volumes to be attached to "+node, func(context.Context) error {
		for volume, on := range by.awaitAttached(volumes...) {
			if slices.Contains(volumes, volume) && on != node {
				return fmt.Errorf("%s is attached to %s", volume, on)
			}
		}
		return nil
	})
}

// podsOn are the names of an app's pods on a Node that are not on their way out.
func (u *user) podsOn(node, app string) []string {
	u.t.Helper()
	var names []string
	for _, pod := range u.pods(u.t.Context()) {
		if pod.Spec.NodeName == node && pod.Labels["app"] == app && pod.DeletionTimestamp == nil {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

// An annotation on a Machine skips what is left of its drain: the VM goes with its pods, and nobody
// waits for their volumes. Another one has it go with volumes that are not detached. Both act in
// the middle, and Events say so.
func TestLIFE10_SkipAnnotationsEndWaits(t *testing.T) {
	tier.Long(t, "it waits for volumes")
	t.Parallel()
	u := newUser(t)
	volumes := u.runAttacher()
	u.apply(deployment("skipped", 1, map[string]string{"spec": "\n      nodeVolumeDetachTimeout: 0s"}))
	u.awaitRunning(1)
	u.apply(u.claim("data-web-0") + u.claim("data-web-1") + u.claim("agent") + storing + `---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 2
  selector: {matchLabels: {app: web}}
`)
	web0, web1 := u.volumeOf("data-web-0"), u.volumeOf("data-web-1")
	volumes.awaitAttached(web0, web1)
	u.kubectl("wait", "pods", "--selector=app=web", "--for=condition=Ready", "--timeout=60s")
	blocked := u.machine()
	u.kubectl("delete", "machine", blocked.Name, "--wait=false")
	u.awaitDrainSays(blocked.Name, "PodDisruptionBudget web wants 2 of its 2 pods")
	u.kubectl("annotate", "machine", blocked.Name, clusterv1alpha1.ExcludeNodeDrainingAnnotation+"=")
	u.kubectl("wait", "machine/"+blocked.Name, "--for=delete", "--timeout=60s")
	u.awaitMachineEvent(clusterv1alpha1.ReasonDrainSkipped, clusterv1alpha1.ExcludeNodeDrainingAnnotation)
	if n := u.evictions(); n != 0 {
		t.Errorf("%d evictions of pods that a budget keeps", n)
	}

	u.kubectl("delete", "poddisruptionbudget", "web")
	u.awaitRunning(1)
	u.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
	stuck := u.machine()
	u.awaitAttachedTo(stuck.Status.NodeRef.Name, volumes, web0, web1)
	volumes.Stick(web0)
	u.kubectl("delete", "machine", stuck.Name, "--wait=false")
	u.awaitWaitForVolumes(stuck.Name, web0+": "+attacher.DetachFailure)
	u.kubectl("annotate", "machine", stuck.Name, clusterv1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation+"=")
	u.kubectl("wait", "machine/"+stuck.Name, "--for=delete", "--timeout=60s")
	u.awaitMachineEvent(clusterv1alpha1.ReasonVolumeWaitSkipped, web0+": "+attacher.DetachFailure)
	u.kubectl("delete", "statefulset/web", "deployment/agent")
	u.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
}

// awaitWaitForVolumes waits until a Machine says that it waits for volumes, and names them so.
func (u *user) awaitWaitForVolumes(machine, text string) {
	u.t.Helper()
	eventually(u.t, "the machine to wait for "+text, func(context.Context) error {
		m, found := u.find(machine)
		if !found {
			return errors.New("the machine is gone")
		}
		c := meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionVolumesDetached)
		if c == nil || c.Reason != clusterv1alpha1.ReasonWaitingForVolumes || !strings.Contains(c.Message, text) {
			return errors.New(words(m.Status.Conditions))
		}
		return nil
	})
}
