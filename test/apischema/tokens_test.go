package apischema

import (
	"fmt"
	"strings"
	"testing"
)

// TestLIFE3_TheManagerWritesTokensOnly: in kube-system the manager writes bootstrap tokens of its
// own group, and no other Secret, such as one with the token of a ServiceAccount there.
func TestLIFE3_TheManagerWritesTokensOnly(t *testing.T) {
	u := newUser(t)
	applyCRDs(u)
	u.do("", "apply", "-f", deployDir+"/rbac/role.yaml", "-f", deployDir+"/rbac/role_binding.yaml", "--namespace=")
	const refusal, as = "the manager ", "--as=system:serviceaccount:millwright-system:millwright-manager"
	secret := func(name, typ, group string) string {
		return fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {namespace: kube-system, name: %s, annotations: {kubernetes.io/service-account.name: default}}
type: %s
stringData: {auth-extra-groups: "%s"}
`, name, typ, group)
	}
	const token, other, group = "bootstrap.kubernetes.io/token", "Opaque", "system:bootstrappers:millwright"
	u.await("the policy is in force", func() bool {
		_, stderr, _ := u.try(secret("a", other, group), "create", "--namespace=kube-system", "-f", "-", as, "--dry-run=server")
		return strings.Contains(stderr, refusal)
	})
	for name, manifest := range map[string]string{
		"a ServiceAccount's token": secret("bootstrap-token-aaaaaa", "kubernetes.io/service-account-token", group),
		"another name":             secret("token-aaaaaa", token, group),
		"another group":            secret("bootstrap-token-aaaaaa", token, "system:bootstrappers:kubeadm:default-node-token"),
		"no group":                 secret("bootstrap-token-aaaaaa", token, ""),
	} {
		if _, stderr, err := u.try(manifest, "create", "--namespace=kube-system", "-f", "-", as); err == nil || !strings.Contains(stderr, refusal) {
			t.Errorf("%s: %v, %s", name, err, stderr)
		}
	}
	foreign := secret("foreign", other, group)
	u.do(foreign, "create", "--namespace=kube-system", "-f", "-")
	t.Cleanup(func() { u.cleanUp(foreign) })
	for _, args := range [][]string{
		{"delete", "secret", "foreign"}, {"patch", "secret", "foreign", "--type=merge", "-p", `{"stringData":{"a":"b"}}`},
	} {
		if _, stderr, err := u.try("", append(args, "--namespace=kube-system", as)...); err == nil || !strings.Contains(stderr, refusal) {
			t.Errorf("%s: %v, %s", args[0], err, stderr)
		}
	}
	u.do(secret("bootstrap-token-aaaaaa", token, group), "create", "--namespace=kube-system", "-f", "-", as)
	u.do("", "patch", "secret", "bootstrap-token-aaaaaa", "--type=merge", "-p", `{"stringData":{"expiration":"2030-01-01T00:00:00Z"}}`, "--namespace=kube-system", as)
	u.do("", "delete", "secret", "bootstrap-token-aaaaaa", "--namespace=kube-system", as)
}
