package localcluster

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The label by which a simulated kubelet tells kwok whose pods to play. A kubelet that does not run
// any more takes it off its Node. The pods there stay as they are and never finish terminating, as
// on any dead machine.
const (
	KubeletLabel   = "millwright.dev/simulated-kubelet"
	KubeletRunning = "running"
)

// UsesGraceAnnotation on a pod has it end only when its grace period is over; others end at once.
const UsesGraceAnnotation = "millwright.dev/uses-its-grace"

// The users that the parts authenticate as which Kubernetes knows no user for.
const (
	// SimKubeletUser is the user of all simulated kubelets, as it stands in the audit log.
	SimKubeletUser = "localcluster:sim-kubelet"
	// KwokUser is kwok's.
	KwokUser = "localcluster:kwok"
	// KubeletClientUser is who the API server is to kubelets, by the name that kubeadm gives it.
	KubeletClientUser = "kube-apiserver-kubelet-client"
)

// kubeletAdminRole is the API server's own role for whoever uses the API of kubelets.
const kubeletAdminRole = "system:kubelet-api-admin"

// roles are the rights of the users above. Simulated kubelets register Nodes as the nodes' own
// users, but in their fast mode.
func roles(fastKubelets bool) map[string][]rbacv1.PolicyRule {
	nodeVerbs := []string{"get", "list"}
	if fastKubelets {
		nodeVerbs = append(nodeVerbs, "create")
	}
	return map[string][]rbacv1.PolicyRule{
		SimKubeletUser: {
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: nodeVerbs},
			{APIGroups: []string{""}, Resources: []string{"nodes/status", "pods/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "get", "update"}},
		},
		KwokUser: {
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete", "get", "list", "patch", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch", "update"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		},
	}
}

// grantRoles gives the users their rights.
func grantRoles(ctx context.Context, client kubernetes.Interface, fastKubelets bool) error {
	for user, rules := range roles(fastKubelets) {
		meta := metav1.ObjectMeta{Name: user}
		role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
		if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create role of %s: %w", user, err)
		}
		if err := bindRole(ctx, client, user, user); err != nil {
			return err
		}
	}
	return bindRole(ctx, client, KubeletClientUser, kubeletAdminRole)
}

func bindRole(ctx context.Context, client kubernetes.Interface, user, role string) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("bind role of %s: %w", user, err)
	}
	return nil
}
