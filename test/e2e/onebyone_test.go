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
	"github.com/millwright-dev/millwright/test/audit"
)

// annotated renders a deployment whose Machines carry an annotation.
func annotated(manifest, key, value string) string {
	return strings.Replace(manifest, "    spec:\n      versions", fmt.Sprintf("      annotations: {%s: %s}\n    spec:\n      versions", key, value), 1)
}

// Where the template asks for it, pods with volumes leave one after another: each is evicted once
// the one before is gone and its volume is detached. All others leave at once. A volume that cannot
// be detached holds the next pod up, and the Machine names it, until the annotation is taken away.
func TestLIFE10_PodsWithVolumesGoOneAfterAnother(t *testing.T) {
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
	u.judgeTurns(volumes.told(), old)
	if n := u.judgeVolumes(volumes.told(), uids, agent); n != len(stored) {
		t.Errorf("%d volumes were detached before their VM went, want %d", n, len(stored))
	}

	volumes.awaitAttached(stored...)
	volumes.stick(stored[0])
	m := u.machine()
	u.kubectl("delete", "machine", m.Name, "--wait=false")
	u.awaitDrainSays(m.Name, "the next one waits for volumes to be detached: "+stored[0]+": "+detachFailure)
	if on := u.podsOn(m.Status.NodeRef.Name, "web"); !slices.Equal(on, []string{"web-1", "web-2"}) {
		t.Errorf("while a volume cannot be detached, the pods on its Node that stay are %v", on)
	}
	u.kubectl("annotate", "machine", m.Name, clusterv1alpha1.DrainPodsWithVolumesAnnotation+"-")
	u.kubectl("wait", "machine/"+m.Name, "--for=delete", "--timeout=120s")
	u.awaitMachineEvent(clusterv1alpha1.ReasonVolumeDetachTimedOut, stored[0]+": "+detachFailure)
	u.awaitRunning(1)
	u.kubectl("delete", "statefulset/web", "deployment/agent", "deployment/app", "poddisruptionbudget/app")
	u.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
}

// judgeTurns fails the test for each pod with a volume that was evicted from a Node before the
// volumes of all those before it were detached, and for each other pod that had to wait for them.
func (u *user) judgeTurns(story []attachment, node string) {
	u.t.Helper()
	requests, err := audit.NewLog(u.AuditLogPath()).Next()
	if err != nil {
		u.t.Fatal(err)
	}
	var turns, others []audit.Request
	for _, r := range requests {
		switch {
		case r.Resource != "pods/eviction" || r.Namespace != u.namespace:
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
		at := slices.IndexFunc(story, func(a attachment) bool { return a.volume == before && a.node == node })
		if at < 0 || story[at].detached.IsZero() || story[at].detached.After(next.Received) {
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
