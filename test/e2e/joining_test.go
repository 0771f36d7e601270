package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// joiningKill is an instant between a machine's token and its end at which the manager is killed.
// What would come next is held, so that the instant lasts until the manager is dead.
type joiningKill struct {
	name string
	// holds is where the call that makes the VM is held; unspecified: it is not.
	holds backendv1alpha1.FaultPoint
	// forbids is the rule of an admission policy that the API server refuses the next step by.
	forbids string
	// deletes says that the machine is on its way out.
	deletes bool
	// come returns nil once the instant has come.
	come func(context.Context, *user) error
}

const (
	forbidApproval = `{apiGroups: [certificates.k8s.io], apiVersions: [v1], operations: [UPDATE], resources: [certificatesigningrequests/approval]}`
	forbidNodes    = `{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [nodes]}`
	forbidDelete   = `{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [secrets]}`
)

func joiningKills() []joiningKill {
	return []joiningKill{
		{name: "token-created", forbids: forbidNodes, come: seesToken},
		{name: "create-in-flight", holds: backendv1alpha1.FaultPoint_FAULT_POINT_BEFORE_EFFECT, come: seesToken},
		{name: "answer-lost", holds: backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT, come: seesToken},
		{name: "request-pending", forbids: forbidApproval, come: func(ctx context.Context, u *user) error {
			return u.seesRequest(ctx, func(s certificatesv1.CertificateSigningRequestStatus) bool { return len(s.Conditions) == 0 })
		}},
		{name: "request-approved", forbids: forbidNodes, come: func(ctx context.Context, u *user) error {
			return u.seesRequest(ctx, func(s certificatesv1.CertificateSigningRequestStatus) bool { return len(s.Conditions) > 0 })
		}},
		{name: "node-there", forbids: forbidDelete, come: func(ctx context.Context, u *user) error {
			var nodes corev1.NodeList
			if err := u.client.List(ctx, &nodes); err != nil {
				return err
			}
			if !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return strings.HasPrefix(n.Name, "joining-") }) {
				return errors.New("the machine has no Node")
			}
			return seesToken(ctx, u)
		}},
		{name: "vm-deleted", forbids: forbidDelete, deletes: true, come: func(ctx context.Context, u *user) error {
			if left := u.resources(ctx); u.machine().DeletionTimestamp.IsZero() || len(left) > 0 {
				return fmt.Errorf("the cloud holds %v", left)
			}
			return seesToken(ctx, u)
		}},
	}
}

// The manager is killed with SIGKILL at each instant between a machine's token and its end. The
// machine joins all the same, has one VM, and leaves no token, request or Node behind.
func TestSAFE5_KilledWhileAMachineJoins(t *testing.T) {
	tier.Long(t, "it kills the manager at seven instants")
	t.Parallel()
	for _, instant := range joiningKills() {
		t.Run(instant.name, func(t *testing.T) { killWhileJoining(t, instant) })
	}
}

func killWhileJoining(t *testing.T, instant joiningKill) {
	u := newUser(t)
	allow := u.forbid(instant.forbids)
	hold := ""
	if instant.holds != backendv1alpha1.FaultPoint_FAULT_POINT_UNSPECIFIED {
		hold = u.hold(u.createVM(), instant.holds)
	}
	u.apply(deployment("joining", 1, nil))
	if instant.deletes {
		eventually(t, "a VM", func(ctx context.Context) error {
			if u.resources(ctx)["vm"] == 0 {
				return errors.New("there is none")
			}
			return seesToken(ctx, u)
		})
		u.kubectl("scale", "machinedeployment", "joining", "--replicas=0")
	}
	eventually(t, instant.name, func(ctx context.Context) error { return instant.come(ctx, u) })
	if hold != "" {
		u.killAt(hold, instant.holds, []string{stack.Manager})
	} else {
		u.kill([]string{stack.Manager})
		allow()
		u.revive([]string{stack.Manager})
	}
	var node string
	if !instant.deletes {
		u.awaitRunning(1)
		u.checkOneVMEach()
		node = u.machine().Status.NodeRef.Name
		if tokens := u.tokens(t.Context()); len(tokens) > 0 {
			t.Errorf("the machine is Running, and %v are left", tokens)
		}
		u.kubectl("scale", "machinedeployment", "joining", "--replicas=0")
	}
	u.awaitGone()
	u.checkNothingJoins(node)
}

// Somebody deletes the token of a VM whose kubelet has no certificate yet. Its Machine says so, and
// is replaced long before its time to join is over. The one in its place joins.
func TestLIFE3_ATokenIsDeletedUnderAVMThatHasYetToJoin(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	allow := u.forbid(forbidApproval)
	u.apply(deployment("joining", 1, nil))
	eventually(t, "a request that is not approved", func(ctx context.Context) error {
		return u.seesRequest(ctx, func(s certificatesv1.CertificateSigningRequestStatus) bool { return len(s.Conditions) == 0 })
	})
	lost := u.machine()
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: u.tokens(t.Context())[0]}}
	if err := u.client.Delete(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	u.awaitSaid(clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonTokenMissing)
	allow()
	eventually(t, "another machine", func(context.Context) error {
		if m := u.machines(); len(m) != 1 || m[0].Name == lost.Name {
			return fmt.Errorf("there are %d machines", len(m))
		}
		return nil
	})
	u.awaitRunning(1)
	u.checkOneVMEach()
	node := u.machine().Status.NodeRef.Name
	u.kubectl("scale", "machinedeployment", "joining", "--replicas=0")
	u.awaitGone()
	u.checkNothingJoins(node)
}

// checkNothingJoins fails the test unless all that a machine joins with is gone.
func (u *user) checkNothingJoins(node string) {
	u.t.Helper()
	ctx := u.t.Context()
	if tokens := u.tokens(ctx); len(tokens) > 0 {
		u.t.Errorf("the machine is gone, and %v are left", tokens)
	}
	if left := u.resources(ctx); len(left) > 0 {
		u.t.Errorf("the machine is gone, and the cloud holds %v", left)
	}
	if err := u.workload.Get(ctx, client.ObjectKey{Name: node}, &corev1.Node{}); node != "" && !apierrors.IsNotFound(err) {
		u.t.Errorf("the machine is gone, and its Node %s is not: %v", node, err)
	}
	eventually(u.t, "no request to be pending", func(ctx context.Context) error {
		for _, r := range u.requests(ctx) {
			if len(r.Status.Conditions) == 0 {
				return fmt.Errorf("the request %s of %s is", r.Name, r.Spec.Username)
			}
		}
		return nil
	})
}

// tokens are the names of the Secrets of all machines' tokens, or of the user's where he shares the
// stack.
func (u *user) tokens(ctx context.Context) (names []string) {
	u.t.Helper()
	var secrets corev1.SecretList
	err := u.workload.List(ctx, &secrets, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{"cluster.k8s.io/machine-uid"})
	if err != nil {
		u.t.Fatalf("list tokens: %v", err)
	}
	own := u.ownUIDs(ctx)
	for _, s := range secrets.Items {
		if s.Type == corev1.SecretTypeBootstrapToken && (!u.shares || own[s.Labels["cluster.k8s.io/machine-uid"]]) {
			names = append(names, s.Name)
		}
	}
	return names
}

// seesToken returns nil once there is the machine's token.
func seesToken(ctx context.Context, u *user) error {
	if n := len(u.tokens(ctx)); n != 1 {
		return fmt.Errorf("there are %d tokens, want 1", n)
	}
	return nil
}

// requests are those for certificates that came since the test began.
func (u *user) requests(ctx context.Context) (since []certificatesv1.CertificateSigningRequest) {
	u.t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	if err := u.workload.List(ctx, &list); err != nil {
		u.t.Fatalf("list CertificateSigningRequests: %v", err)
	}
	for _, r := range list.Items {
		if r.CreationTimestamp.Unix() >= u.since.Unix() {
			since = append(since, r)
		}
	}
	return since
}

// seesRequest returns nil once a kubelet's request for its first certificate is as wanted.
func (u *user) seesRequest(ctx context.Context, wanted func(certificatesv1.CertificateSigningRequestStatus) bool) error {
	requests := u.requests(ctx)
	for _, r := range requests {
		if strings.HasPrefix(r.Spec.Username, "system:bootstrap:") && wanted(r.Status) {
			return nil
		}
	}
	return fmt.Errorf("none of %d requests is as wanted", len(requests))
}

// forbid has the API server refuse what a rule describes, of Secrets those in kube-system, until
// allow is called. An empty rule forbids nothing.
func (u *user) forbid(rule string) (allow func()) {
	u.t.Helper()
	if rule == "" {
		return func() {}
	}
	allow = func() {
		if out, err := u.try(nil, "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", u.own, "--ignore-not-found"); err != nil {
			u.t.Errorf("allow it again: %v\n%s", err, out)
		}
	}
	u.t.Cleanup(allow)
	u.apply(fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    resourceRules:
    - %[2]s
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps], resourceNames: [probe]}
  matchConditions:
  - {name: tokens, expression: "request.resource.resource != 'secrets' || request.namespace == 'kube-system'"}
  validations:
  - {expression: "false", message: The test forbids it.}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, u.own, rule))
	eventually(u.t, "the policy to hold", func(context.Context) error {
		out, err := u.try(nil, "create", "configmap", "probe", "--dry-run=server")
		if err == nil {
			return errors.New("it does not yet")
		}
		if !strings.Contains(out, "The test forbids it.") {
			return errors.New(out)
		}
		return nil
	})
	return allow
}
