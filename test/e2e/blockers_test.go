package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster"
	"github.com/millwright-dev/millwright/test/audit"
	"github.com/millwright-dev/millwright/test/tier"
)

// A pod that may run on a cordoned Node comes straight back when it is evicted: it goes with its
// Node.
func TestLIFE10_PodThatComesBack(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.apply(standalone("lone", ""))
	u.awaitRunning(1)
	u.apply(`apiVersion: apps/v1
kind: Deployment
metadata: {name: agent}
spec:
  replicas: 1
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      nodeSelector: {pool: alone}
      tolerations: [{operator: Exists}]
      containers: [{name: agent, image: agent}]
`)
	u.kubectl("rollout", "status", "deployment/agent", "--timeout=60s")
	u.kubectl("delete", "machine", "lone", "--timeout=30s")
	if n := u.evictions(); n != 0 {
		t.Errorf("%d evictions of a pod that comes back", n)
	}
	u.kubectl("delete", "deployment", "agent")
}

// evictions counts those in the user's namespace since the test began.
func (u *user) evictions() int {
	u.t.Helper()
	requests, err := audit.NewLog(u.Workload().AuditLogPath()).Next()
	if err != nil {
		u.t.Fatal(err)
	}
	n := 0
	for _, r := range requests {
		if r.Resource == "pods/eviction" && r.Namespace == u.namespace && r.Received.After(u.since) {
			n++
		}
	}
	return n
}

// barePod renders a pod on the Nodes of standalone Machines.
func barePod(namespace, name string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %[2]s, namespace: %[1]s, labels: {app: %[2]s}}
spec:
  nodeSelector: {pool: alone}
  containers: [{name: main, image: main}]
---
`, namespace, name)
}

// In a namespace that is being deleted no eviction is admitted. The pods there are named and waited
// for; of the others each gets what is due to it.
func TestLIFE10_RefusedEviction(t *testing.T) {
	tier.Long(t, "it stops the controller manager")
	t.Parallel()
	u := newUser(t)
	ending := u.namespace + "-ending"
	u.kubectl("create", "namespace", ending)
	eventually(t, "the new namespace to have its ServiceAccount", func(context.Context) error {
		_, err := u.try(nil, "get", "serviceaccount", "default", "-n", ending)
		return err
	})
	u.apply(standalone("lone", ""))
	u.awaitRunning(1)
	u.apply(barePod(u.namespace, "free") + barePod(u.namespace, "kept") + `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: kept}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: kept}}
`)
	if out, err := u.in(ending, "apply", barePod(ending, "doomed")); err != nil {
		t.Fatalf("make a pod: %v\n%s", err, out)
	}
	for namespace, names := range map[string][]string{u.namespace: {"pod/free", "pod/kept"}, ending: {"pod/doomed"}} {
		if out, err := u.in(namespace, "wait", "", append(names, "--for=condition=Ready", "--timeout=60s")...); err != nil {
			t.Fatalf("wait for pods: %v\n%s", err, out)
		}
	}
	// With nobody who empties it, the namespace stays as it is at the beginning of its end.
	u.kill([]string{localcluster.ControllerManager})
	u.kubectl("delete", "namespace", ending, "--wait=false")
	u.kubectl("delete", "machine", "lone", "--wait=false")
	eventually(t, "the drain to name who blocks it, and who is refused", func(context.Context) error {
		m, found := u.find("lone")
		if !found {
			return errors.New("the machine is gone")
		}
		text := words(m.Status.Conditions)
		for _, part := range []string{clusterv1alpha1.ReasonBlockedByPodDisruptionBudget, u.namespace + "/kept", ending + "/doomed", "being terminated"} {
			if !strings.Contains(text, part) {
				return fmt.Errorf("no word of %q in%s", part, text)
			}
		}
		return nil
	})
	eventually(t, "the pod that nothing keeps to be evicted", func(ctx context.Context) error {
		if slices.ContainsFunc(u.pods(ctx), func(pod corev1.Pod) bool { return pod.Name == "free" }) {
			return errors.New("it is there")
		}
		return nil
	})
	u.kubectl("delete", "poddisruptionbudget", "kept")
	eventually(t, "the drain to name who is refused", func(context.Context) error {
		m, _ := u.find("lone")
		if text := words(m.Status.Conditions); !strings.Contains(text, clusterv1alpha1.ReasonEvictionRefused) {
			return errors.New(text)
		}
		return nil
	})
	u.revive([]string{localcluster.ControllerManager})
	u.kubectl("wait", "machine/lone", "--for=delete", "--timeout=60s")
}

// in runs kubectl in another namespace, with a manifest unless that is empty.
func (u *user) in(namespace, verb, manifest string, args ...string) (string, error) {
	as := *u
	as.namespace = namespace
	if manifest != "" {
		args = append(args, "-f", "-")
	}
	return as.try([]byte(manifest), append([]string{verb}, args...)...)
}
