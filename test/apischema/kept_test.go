package apischema

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

const (
	machineCRD  = "machines.cluster.k8s.io"
	policies    = "validatingadmissionpolicies,validatingadmissionpolicybindings"
	allowsIt    = "cluster.k8s.io/allow-deletion=true"
	uninstallIt = "run `kubectl millwright uninstall`"
)

// applyCRDs applies deploy/crds as an administrator does, and waits until its policies are in
// force.
func applyCRDs(u *user) {
	u.t.Helper()
	u.do("", "apply", "--server-side", "--force-conflicts", "-k", crdsDir)
	u.await("the CRD is protected", func() bool {
		_, stderr, _ := u.try("", "delete", "crd", machineCRD, "--dry-run=server")
		return strings.Contains(stderr, uninstallIt)
	})
	u.await("the namespace is protected", func() bool {
		_, stderr, _ := u.try("", "delete", "namespace", "millwright-system", "--dry-run=server")
		return strings.Contains(stderr, uninstallIt)
	})
}

// Whoever deletes a CRD, by whatever way, is refused and told what to do instead. Everything of
// ours is still there afterwards.
func TestOPS11_DeletingACRDIsRefused(t *testing.T) {
	u := newUser(t)
	applyCRDs(u)
	for _, args := range [][]string{
		{"delete", "crd", machineCRD},
		{"delete", "crd", machineCRD, "--force", "--grace-period=0"},
		{"delete", "crd", "--all"},
		{"delete", "--raw", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"},
		{"delete", "-f", crdsDir + "/cluster.k8s.io_machines.yaml"},
		{"delete", "namespace", "millwright-system"},
		{"delete", "namespace", "millwright-credentials"},
		{"delete", "-k", crdsDir},
	} {
		_, stderr, err := u.try("", args...)
		if err == nil || !strings.Contains(stderr, uninstallIt) {
			t.Errorf("kubectl %s: %v, %s: want it refused, with %q", strings.Join(args, " "), err, stderr, uninstallIt)
		}
	}
	for _, name := range []string{"machinedeployments", "machinesets", "machines", "machineclasses", "clusters", "machinehealthchecks"} {
		u.do("", "get", name)
		if deleted := u.do("", "get", "crd", name+".cluster.k8s.io", "-o", "jsonpath={.metadata.deletionTimestamp}"); deleted != "" {
			t.Errorf("the CRD of %s is being deleted since %s", name, deleted)
		}
	}
	for _, name := range []string{"millwright-system", "millwright-credentials"} {
		if phase := u.do("", "get", "namespace", name, "-o", "jsonpath={.status.phase}"); phase != "Active" {
			t.Errorf("namespace %s is %s", name, phase)
		}
	}
	restorePolicies(u)
}

// Policies that are deleted stay in force, and CRDs of others are nobody's business here.
func TestOPS11_ThePoliciesOutliveTheirDeletion(t *testing.T) {
	u := newUser(t)
	applyCRDs(u)
	u.do("", "delete", policies, "--all", "--wait=false")
	if _, stderr, err := u.try("", "delete", "crd", machineCRD); err == nil || !strings.Contains(stderr, uninstallIt) {
		t.Errorf("without its policy: %v, %s: want it refused", err, stderr)
	}
	restorePolicies(u)
	applyCRDs(u)

	foreign := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: machines.example.com}
spec:
  group: example.com
  names: {kind: Machine, plural: machines}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
	u.do(foreign, "apply", "-f", "-")
	u.do("", "delete", "crd", "machines.example.com")
	u.do("", "annotate", "crd", machineCRD, allowsIt)
	u.do("", "delete", "crd", machineCRD, "--dry-run=server")
	u.do("", "annotate", "crd", machineCRD, strings.TrimSuffix(allowsIt, "=true")+"-")
}

// restorePolicies lets policies go that are being deleted, and applies them again.
func restorePolicies(u *user) {
	u.t.Helper()
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("admissionregistration.k8s.io/v1")
		list.SetKind(kind + "List")
		if err := u.server.client.List(u.t.Context(), list); err != nil {
			u.t.Fatal(err)
		}
		for i := range list.Items {
			one := &list.Items[i]
			if one.GetDeletionTimestamp() == nil {
				continue
			}
			patch := client.MergeFrom(one.DeepCopy())
			one.SetFinalizers(nil)
			if err := u.server.client.Patch(u.t.Context(), one, patch); err != nil && !apierrors.IsNotFound(err) {
				u.t.Fatal(err)
			}
		}
	}
}

// The verb forget, the delete and the machineUID are what it takes to have a Machine forgotten;
// each refusal says which of them is missing.
func TestOPS11_ForgettingTakesTheVerb(t *testing.T) {
	u := newUser(t)
	applyCRDs(u)
	const machineUID = "3fb1d1a6-7a2e-4a52-9d1b-8f0f5a0b7a11"
	u.do("", "create", "role", "editor", "--verb=get,list,create,update,patch,delete", "--resource=machines.cluster.k8s.io")
	u.do("", "create", "rolebinding", "editor", "--role=editor", "--user=editor", "--user=operator")
	u.do("", "create", "rolebinding", "forgetter", "--clusterrole=millwright-machine-forgetter", "--user=operator")
	manifest := edited(t, machineManifest, edit{"spec.machineUID", machineUID}, edit{"metadata.finalizers", "[example.com/held]"})
	u.do(manifest, "apply", "-f", "-")
	t.Cleanup(func() { u.letGo("node-1") })
	forget := func(as, value string) (string, error) {
		_, stderr, err := u.try("", "annotate", "machine", "node-1", "--overwrite", "cluster.k8s.io/forget="+value, "--as="+as)
		return stderr, err
	}
	u.await("the verb is asked for", func() bool {
		stderr, err := forget("editor", machineUID)
		return err != nil && strings.Contains(stderr, "it takes the verb forget on machines.cluster.k8s.io in namespace "+u.namespace)
	})
	born := edited(t, manifest, edit{"metadata.annotations", "{cluster.k8s.io/forget: " + machineUID + "}"})
	if _, stderr, err := u.try(strings.ReplaceAll(born, "node-1", "node-2"), "create", "-f", "-", "--as=editor"); err == nil {
		t.Errorf("a Machine is born to be forgotten: %s", stderr)
	}
	u.await("only what is deleted", func() bool {
		stderr, err := forget("operator", machineUID)
		return err != nil && strings.Contains(stderr, "is only for a Machine that is being deleted: delete it first")
	})
	u.do("", "delete", "machine", "node-1", "--wait=false")
	if stderr, err := forget("operator", "true"); err == nil || !strings.Contains(stderr, "has to be the spec.machineUID") {
		t.Errorf("forget=true: %v, %s", err, stderr)
	}
	if stderr, err := forget("editor", machineUID); err == nil || !strings.Contains(stderr, "millwright-machine-forgetter") {
		t.Errorf("without the verb: %v, %s", err, stderr)
	}
	if stderr, err := forget("operator", machineUID); err != nil {
		t.Errorf("with the verb: %v, %s", err, stderr)
	}
	// Who changes something else of it needs no verb.
	u.do("", "label", "machine", "node-1", "seen=yes", "--as=editor")
}

// letGo removes a Machine whatever holds it.
func (u *user) letGo(name string) {
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}}
	ctx := context.WithoutCancel(u.t.Context())
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := u.server.client.Patch(ctx, m, patch); client.IgnoreNotFound(err) != nil {
		u.t.Error(err)
	}
	if err := u.server.client.Delete(ctx, m); client.IgnoreNotFound(err) != nil {
		u.t.Error(err)
	}
}

// await asks until what was expected is so: the API server learns of a policy or a right a moment
// after it was written.
func (u *user) await(what string, met func() bool) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !met() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			u.t.Fatalf("waited in vain: %s", what)
		}
	}
}
