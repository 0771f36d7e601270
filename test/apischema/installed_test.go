package apischema

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestAPIServerAcceptsTheCRDs wants the API server to have nothing against the CRDs: served,
// structural, and in a group of Kubernetes by an explicit annotation.
func TestAPIServerAcceptsTheCRDs(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	for _, name := range []string{"machinedeployments", "machinesets", "machines", "machineclasses", "clusters", "machinehealthchecks"} {
		var crd apiextensionsv1.CustomResourceDefinition
		raw := u.do("", "get", "crd", name+".cluster.k8s.io", "-o", "json")
		if err := yaml.Unmarshal([]byte(raw), &crd); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, c := range crd.Status.Conditions {
			got[string(c.Type)] = string(c.Status) + " " + c.Reason
		}
		want := map[string]string{
			"Established":                           "True InitialNamesAccepted",
			"NamesAccepted":                         "True NoConflicts",
			"KubernetesAPIApprovalPolicyConformant": "False UnapprovedAnnotation",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("conditions of %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestKustomizationIsComplete applies what `kubectl apply -k` would, over what is
// there, and wants what outlives the manager to be among it and nothing else.
func TestKustomizationIsComplete(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	rendered, err := exec.CommandContext(t.Context(), u.server.kubectlBin, "kustomize", crdsDir).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(u.do(string(rendered), "apply", "--server-side", "--dry-run=server", "--force-conflicts", "-o", "name", "-f", "-"))
	slices.Sort(got)
	const (
		prefix  = "customresourcedefinition.apiextensions.k8s.io/"
		policy  = "validatingadmissionpolicy.admissionregistration.k8s.io/"
		binding = "validatingadmissionpolicybinding.admissionregistration.k8s.io/"
	)
	want := []string{
		"clusterrole.rbac.authorization.k8s.io/millwright-machine-forgetter",
		prefix + "clusters.cluster.k8s.io",
		prefix + "machineclasses.cluster.k8s.io",
		prefix + "machinedeployments.cluster.k8s.io",
		prefix + "machinehealthchecks.cluster.k8s.io",
		prefix + "machines.cluster.k8s.io",
		prefix + "machinesets.cluster.k8s.io",
		"namespace/millwright-credentials",
		"namespace/millwright-system",
		policy + "millwright-autoscaler-sizes",
		policy + "millwright-bootstrap-tokens",
		policy + "millwright-crd-deletion",
		policy + "millwright-forget",
		policy + "millwright-namespace-deletion",
		binding + "millwright-autoscaler-sizes",
		binding + "millwright-bootstrap-tokens",
		binding + "millwright-crd-deletion",
		binding + "millwright-forget",
		binding + "millwright-namespace-deletion",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestClientsAgree applies the same manifest in both ways that kubectl has, again
// and again: what is unchanged must be seen to be unchanged, or every apply
// would be a new generation and work for the controllers.
func TestClientsAgree(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.do(deploymentManifest, "apply", "-f", "-")
	if got, want := u.do(deploymentManifest, "apply", "-f", "-"), "machinedeployment.cluster.k8s.io/nodes unchanged\n"; got != want {
		t.Errorf("second apply: got %q, want %q", got, want)
	}
	u.do(deploymentManifest, "apply", "--server-side", "-f", "-")
	u.do(deploymentManifest, "apply", "--server-side", "-f", "-")
	if got := u.do("", "get", "md/nodes", "-o", "jsonpath={.metadata.generation}"); got != "1" {
		t.Errorf("generation after four times the same: %s", got)
	}
}
