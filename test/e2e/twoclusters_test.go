package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/localcluster/stack"
)

// onTwoClusters is the stack of the tests with Machines in one cluster and Nodes in another.
var onTwoClusters = newLane(1, startTwoClusters)

func startTwoClusters() (*fixture, error) {
	dir, err := os.MkdirTemp("", "mw-two-")
	if err != nil {
		return nil, err
	}
	options := stackOptions(dir)
	options.CloudArgs, options.Layout = nil, stack.TwoClusters
	options.ManagerArgs = []string{"-v=4", "--settle-period=1s", "--orphan-interval=" + scanInterval.String()}
	return newFixture(options)
}

// newTwoClustersUser returns a user of that stack.
func newTwoClustersUser(t *testing.T) *user {
	t.Helper()
	return newUserOf(t, onTwoClusters.enter(t, false))
}

// A rollout with Machines in one cluster and Nodes in the other: Nodes join, are drained under a
// PodDisruptionBudget and go there, and so do tokens. The management cluster has none of it. The
// manager has no right but those that are shipped for each side.
func TestLIFE13_TwoClustersRollout(t *testing.T) {
	t.Parallel()
	const size, pods = 3, 4
	u := newTwoClustersUser(t)
	story := u.followPods()
	u.apply(deployment("rolled", size, nil))
	u.awaitRunning(size)
	u.checkNodesAreElsewhere(size)
	u.onNodes().apply(lasting("app", pods, pods-1, 2*time.Second))
	u.onNodes().kubectl("rollout", "status", "deployment/app", "--timeout=60s")
	story.allUp("app", pods)

	old := u.machines()
	u.apply(deployment("rolled", size, map[string]string{"kubelet": "1.34.2"}))
	u.rolledOut("rolled")
	u.awaitRunning(size)
	u.checkOneVMEach()
	u.checkNodesAreElsewhere(size)
	for _, m := range old {
		if err := u.workload.Get(t.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, &corev1.Node{}); !apierrors.IsNotFound(err) {
			t.Errorf("machine %s was replaced, and its Node %s is not gone: %v", m.Name, m.Status.NodeRef.Name, err)
		}
	}
	u.onNodes().kubectl("rollout", "status", "deployment/app", "--timeout=60s")
	if n := u.evictions(); n < pods {
		t.Errorf("%d evictions, want at least one for each of %d pods", n, pods)
	}
	story.judge(u, map[string]int{"app": pods - 1})
	u.onNodes().kubectl("delete", "deployment,poddisruptionbudget", "--all")
	u.kubectl("delete", "machinedeployment", "rolled")
	u.awaitGone()
	u.checkNodesAreElsewhere(0)
	u.checkNothingIsForbidden()
}

// checkNodesAreElsewhere fails the test unless there are n Nodes, all in the workload cluster, each
// with an approved request for its certificate, and no token is left.
func (u *user) checkNodesAreElsewhere(n int) {
	u.t.Helper()
	ctx := u.t.Context()
	var here, there corev1.NodeList
	if err := errors.Join(u.client.List(ctx, &here), u.workload.List(ctx, &there)); err != nil {
		u.t.Fatalf("list Nodes: %v", err)
	}
	if len(here.Items) != 0 || len(there.Items) != n {
		u.t.Errorf("%d Nodes in the management cluster and %d in the workload cluster, want 0 and %d", len(here.Items), len(there.Items), n)
	}
	if tokens := u.tokens(ctx); len(tokens) > 0 {
		u.t.Errorf("tokens are left in the workload cluster: %v", tokens)
	}
	var secrets corev1.SecretList
	var requests certificatesv1.CertificateSigningRequestList
	if err := errors.Join(u.client.List(ctx, &secrets, client.InNamespace(metav1.NamespaceSystem)), u.client.List(ctx, &requests)); err != nil {
		u.t.Fatalf("read the management cluster: %v", err)
	}
	for _, s := range secrets.Items {
		if s.Type == corev1.SecretTypeBootstrapToken {
			u.t.Errorf("the management cluster has the token %s", s.Name)
		}
	}
	if len(requests.Items) > 0 {
		u.t.Errorf("the management cluster has %d requests for certificates", len(requests.Items))
	}
	approved := 0
	for _, r := range u.requests(ctx) {
		for _, c := range r.Status.Conditions {
			if c.Type == certificatesv1.CertificateApproved {
				approved++
			}
		}
	}
	if approved < n {
		u.t.Errorf("%d requests were approved in the workload cluster for %d Nodes", approved, n)
	}
}

// checkNothingIsForbidden fails the test when an API server has refused the manager something since
// the test began. One that has just been started does not know all roles yet: no test that starts
// one calls this.
func (u *user) checkNothingIsForbidden() {
	u.t.Helper()
	text, err := os.ReadFile(u.Process(stack.Manager).LogPath())
	if err != nil {
		u.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var entry struct{ Time time.Time }
		if !bytes.Contains(line, []byte("is forbidden: User")) || json.Unmarshal(line, &entry) == nil && entry.Time.Before(u.since) {
			continue
		}
		u.t.Errorf("the manager lacks a right: %s", line)
	}
}
