package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/tier"
)

// classed renders a Machine that is made from a class, and of a Cluster unless that is empty.
func classed(name, class, cluster, spec string) string {
	ref := ""
	if cluster != "" {
		ref = "\n  clusterRef: {name: " + cluster + "}"
	}
	if spec != "" {
		spec = "\n      cloudProviderSpec: " + spec
	}
	return fmt.Sprintf(`apiVersion: cluster.k8s.io/v1alpha1
kind: Machine
metadata: {name: %s}
spec:
  versions: {kubelet: 1.34.3}%s
  providerSpec:
    valueFrom: {machineClass: {name: %s}}
    value:
      operatingSystem: ubuntu%s
`, name, ref, class, spec)
}

// mayReadSecrets binds the manager to the role for credentials in the test's namespace, as
// docs/templates.md says.
func (u *user) mayReadSecrets() {
	u.t.Helper()
	u.kubectl("create", "rolebinding", "millwright-credentials", "--clusterrole=millwright-credentials",
		"--serviceaccount=millwright-system:millwright-manager")
}

// applied is what the driver was told of a Machine, as its status says.
func (u *user) applied(name string) string {
	u.t.Helper()
	return u.kubectl("get", "machine", name, "-o", "jsonpath={.status.providerSpec.cloudProviderSpec}")
}

// A class and a Cluster give what a Machine does not say itself; a class that comes later is waited
// for.
func TestAPI5_MachineClass(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(classed("early", "large", "", ""))
	u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonMachineClassNotFound, "large")
	u.apply(`{apiVersion: cluster.k8s.io/v1alpha1, kind: MachineClass, metadata: {name: large}, provider: fake,
  providerSpec: {flavor: large, image: ubuntu-24.04, zone: fake-1c}}`)
	u.apply(classed("own", "large", "", "{zone: fake-1b}"))
	u.awaitRunning(2)
	for name, zone := range map[string]string{"early": "fake-1c", "own": "fake-1b"} {
		if got := u.applied(name); !strings.Contains(got, `"flavor":"large"`) || !strings.Contains(got, zone) {
			t.Errorf("%s was made from %s", name, got)
		}
	}
	// A change of the class reaches new machines only.
	u.kubectl("patch", "machineclass", "large", "--type=merge", "--patch", `{"providerSpec":{"flavor":"small"}}`)
	u.apply(classed("late", "large", "", ""))
	u.awaitRunning(3)
	if got := u.applied("early") + u.applied("late"); !strings.Contains(got, `"flavor":"large"`) || !strings.Contains(got, `"flavor":"small"`) {
		t.Errorf("after the change: %s", got)
	}
	u.checkOneVMEach()
}

// A Cluster's spec lies under all others, and its credentials open the account.
func TestAPI6_Cluster(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.mayReadSecrets()
	u.kubectl("create", "secret", "generic", "cloud", "--from-literal=key=nobody-knows-this")
	u.apply(`{apiVersion: cluster.k8s.io/v1alpha1, kind: Cluster, metadata: {name: blue}, spec: {
  credentialsSecretRef: {name: cloud},
  providerSpec: {value: {cloudProvider: fake, cloudProviderSpec: {zone: fake-1c, image: ubuntu-22.04}}}}}`)
	u.apply(deployment("heirs", 2, map[string]string{"spec": "\n      clusterRef: {name: blue}"}))
	u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonCredentialsInvalid, "")
	u.kubectl("delete", "machinedeployment", "heirs")
	u.awaitGone()
	u.kubectl("patch", "cluster.cluster.k8s.io", "blue", "--type=merge", "--patch", `{"spec":{"credentialsSecretRef":null}}`)
	u.apply(deployment("heirs", 2, map[string]string{"spec": "\n      clusterRef: {name: blue}"}))
	u.awaitRunning(2)
	for _, m := range u.machines() {
		got := u.applied(m.Name)
		if !strings.Contains(got, "fake-1c") || !strings.Contains(got, "ubuntu-24.04") || !strings.Contains(got, "small") {
			t.Errorf("%s was made from %s", m.Name, got)
		}
	}
	u.checkOneVMEach()
}

// canary is a secret that must be seen nowhere but by the cloud.
const canary = "canary-secret-2f6b"

// Each string may come from elsewhere; secrets only where the driver expects them, and from where
// the operator allows it.
func TestAPI4_References(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	spec := func(extra string) map[string]string { return map[string]string{"extra": extra} }
	u.apply(deployment("waiting", 1, spec(", key: {secretKeyRef: {name: cloud, key: key}}")))
	u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonReferenceUnresolved, "millwright-credentials")
	u.mayReadSecrets()
	u.kubectl("create", "secret", "generic", "cloud", "--from-literal=key="+canary)
	u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonCredentialsInvalid, "")
	if out := u.kubectl("get", "machines,machinesets,machinedeployments,events", "-o", "yaml"); strings.Contains(out, canary) {
		t.Errorf("the secret is shown:\n%s", out)
	}
	u.kubectl("delete", "machinedeployment", "waiting")
	u.awaitGone()

	for _, tc := range []struct{ name, extra, field, text string }{
		{"not-secret", ", zone: {secretKeyRef: {name: cloud, key: key}}", "zone", "writeOnly"},
		{"foreign", ", key: {secretKeyRef: {name: cloud, key: key, namespace: kube-system}}", "key", "--secret-namespaces"},
		{"half", ", key: {secretKeyRef: {name: cloud}}", "key", "needs a name and a key"},
	} {
		u.refusedOrShown(deployment(tc.name, 1, spec(tc.extra)), "cloudProviderSpec."+tc.field, tc.text)
	}

	u.kubectl("create", "configmap", "where", "--from-literal=zone=fake-1b")
	u.apply(deployment("resolved", 1, map[string]string{
		"flavor": "{value: large}", "extra": ", zone: {configMapKeyRef: {name: where, key: zone}}",
	}))
	u.awaitRunning(1)
	if got := u.applied(u.machine().Name); got != `{"flavor":"large","image":"ubuntu-24.04","zone":"fake-1b"}` {
		t.Errorf("made from %s", got)
	}
	u.checkOneVMEach()
	u.noCanaryInLogs()
}

// secretNamespace and allowedEndpoints are what the operator of the shared stack allows to all
// namespaces.
const (
	secretNamespace  = "shared-secrets"
	allowedEndpoints = "*.cloud.example"
)

// Secrets of another namespace and addresses of a cloud are taken where the operator allows them,
// and nowhere else.
func TestAPI4_WhatTheOperatorAllows(t *testing.T) {
	tier.Long(t, "it makes and ends a namespace of Secrets")
	t.Parallel()
	u := newSharingUser(t)
	u.kubectl("create", "namespace", secretNamespace)
	t.Cleanup(func() {
		// While there are machines that were made with its Secret, they need it to go.
		u.namespace = u.own
		u.kubectl("delete", "machinedeployments,machinesets,machines", "--all", "--timeout=90s")
		u.kubectl("delete", "namespace", secretNamespace)
	})
	u.namespace = secretNamespace
	u.mayReadSecrets()
	u.kubectl("create", "secret", "generic", "cloud", "--from-literal=key="+otherKey)
	u.namespace = u.own
	u.apply(deployment("foreign", 1, map[string]string{"extra": ", key: {secretKeyRef: {name: cloud, key: key, namespace: " + secretNamespace + "}}"}))
	u.apply(deployment("addressed", 1, map[string]string{"extra": ", endpoint: https://compute.cloud.example"}))
	u.awaitRunning(2)
	u.checkOneVMEach()
	u.kubectl("delete", "machinedeployments", "--all")
	u.awaitGone()
	u.refusedOrShown(deployment("lured", 1, map[string]string{"extra": ", endpoint: https://cloud.example.evil"}), "cloudProviderSpec.endpoint", "--allow-endpoint")
}

// noCanaryInLogs reads all that the processes have logged.
func (u *user) noCanaryInLogs() {
	u.t.Helper()
	for _, process := range []string{stack.Manager, stack.Driver} {
		text, err := os.ReadFile(filepath.Clean(u.Process(process).LogPath()))
		if err != nil {
			u.t.Fatal(err)
		}
		if strings.Contains(string(text), canary) {
			u.t.Errorf("%s logs the secret", process)
		}
	}
}

// refusedOrShown applies a deployment whose spec is wrong. With the webhook it is refused; without
// it, its Machine shows the same.
func (u *user) refusedOrShown(manifest, field, text string) {
	u.t.Helper()
	out, err := u.try([]byte(manifest), "apply", "-f", "-")
	if err != nil {
		if !strings.Contains(out, field) || !strings.Contains(out, text) {
			u.t.Errorf("refused without naming %s and %q: %s", field, text, out)
		}
		return
	}
	u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonSpecInvalid, text)
	u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonSpecInvalid, field)
	u.kubectl("delete", "machinedeployments", "--all")
	u.awaitGone()
}

// A driver with another default: what runs goes on, and only new machines get it.
func TestAPI9_NewDefaultReplacesNothing(t *testing.T) {
	tier.Long(t, "it starts the driver anew, twice")
	t.Parallel()
	u := newUser(t)
	u.apply(deployment("kept", 3, nil))
	u.awaitRunning(3)
	before := u.uids()
	args := u.Process(stack.Driver).Args()
	t.Cleanup(func() { u.restart(stack.Driver, args) })
	u.restart(stack.Driver, append(slices.Clone(args), "--default-zone=fake-1b"))
	u.kubectl("scale", "machinedeployment", "kept", "--replicas=5")
	u.awaitRunning(5)
	zones := map[string]int{}
	for _, m := range u.machines() {
		zones[u.applied(m.Name)]++
	}
	u.checkKept(before)
	old, fresh := `{"flavor":"small","image":"ubuntu-24.04","zone":"fake-1a"}`, `{"flavor":"small","image":"ubuntu-24.04","zone":"fake-1b"}`
	if zones[old] != 3 || zones[fresh] != 2 {
		t.Errorf("made from %v", zones)
	}
	var sets clusterv1alpha1.MachineSetList
	if err := u.client.List(t.Context(), &sets); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, set := range sets.Items {
		if set.Namespace == u.namespace {
			n++
		}
	}
	if n != 1 {
		t.Errorf("there are %d sets, want 1", n)
	}
	u.checkOneVMEach()
}

// A wrong spec is refused when it is applied, whatever object it is in, with the path of the field.
// What a rule of the CRD cannot see is refused as well.
func TestAPI9_WrongSpecsAreRefused(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	for _, tc := range []struct{ name, manifest, field, text string }{
		{
			"deployment", deployment("wrong", 1, map[string]string{"extra": ", colour: red"}),
			"spec.template.spec.providerSpec.value.cloudProviderSpec.colour", "is not a field",
		},
		{
			"machine", strings.Replace(classed("wrong", "none", "", "{flavor: small}"), "valueFrom: {machineClass: {name: none}}\n    value:", "value:\n      cloudProvider: fake", 1),
			"spec.providerSpec.value.cloudProviderSpec.image", "is required",
		},
		{
			"class", `{apiVersion: cluster.k8s.io/v1alpha1, kind: MachineClass, metadata: {name: wrong}, provider: fake, providerSpec: {flavor: 7}}`,
			"providerSpec.flavor", "want string",
		},
		{
			"cluster", `{apiVersion: cluster.k8s.io/v1alpha1, kind: Cluster, metadata: {name: wrong}, spec: {providerSpec: {value: {cloudProvider: fake, cloudProviderSpec: {colour: red}}}}}`,
			"spec.providerSpec.value.cloudProviderSpec.colour", "is not a field",
		},
	} {
		eventually(t, tc.name+" to be refused", func(context.Context) error {
			out, err := u.try([]byte(tc.manifest), "apply", "--dry-run=server", "-f", "-")
			if err == nil {
				return fmt.Errorf("accepted: %s", out)
			}
			if !strings.Contains(out, tc.field+": ") || !strings.Contains(out, tc.text) {
				return fmt.Errorf("refused in other words: %s", out)
			}
			return nil
		})
	}
	u.apply(deployment("right", 1, nil))
	u.awaitRunning(1)
	rename := `{"spec":{"providerSpec":{"value":{"cloudProviderSpec":{"image":null,"zone":"ubuntu-24.04"}}}}}`
	if out, err := u.try(nil, "patch", "machine", u.machine().Name, "--type=merge", "--patch", rename); err == nil ||
		!strings.Contains(out, "cannot be changed on a Machine") {
		t.Errorf("a renamed field passes: %v: %s", err, out)
	}
}

// Without the webhook everything is accepted, and a condition names the field.
func TestAPI9_WithoutTheWebhook(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.withoutWebhook()
	eventually(t, "the webhook to be off", func(context.Context) error {
		out, err := u.try([]byte(deployment("wrong", 1, map[string]string{"extra": ", colour: red"})), "apply", "-f", "-")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonSpecInvalid,
		"spec.providerSpec.value.cloudProviderSpec.colour: is not a field")
}

// withoutWebhook has the webhook judge nothing until the test ends, or withWebhook.
func (u *user) withoutWebhook() {
	u.t.Helper()
	u.t.Cleanup(u.withWebhook)
	u.webhookJudges("off.example.com")
}

func (u *user) withWebhook() {
	u.t.Helper()
	u.webhookJudges("cluster.k8s.io")
}

func (u *user) webhookJudges(group string) {
	u.t.Helper()
	out, err := u.try(nil, "patch", "validatingwebhookconfiguration", "millwright", "--type=json",
		"--patch", `[{"op":"replace","path":"/webhooks/0/rules/0/apiGroups","value":["`+group+`"]}]`)
	if err != nil {
		u.t.Errorf("have the webhook judge %s: %v: %s", group, err, out)
	}
}

// A class stays as long as a Machine needs it, and goes when that is gone. Its Secret may go
// before: there is a copy of it.
func TestAPI5_ClassIsKeptWhileInUse(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.mayReadSecrets()
	u.kubectl("create", "secret", "generic", "cloud", "--from-literal=unused=1")
	u.apply(`{apiVersion: cluster.k8s.io/v1alpha1, kind: MachineClass, metadata: {name: kept}, provider: fake,
  providerSpec: {flavor: small, image: ubuntu-24.04}, credentialsSecretRef: {name: cloud}}`)
	u.kubectl("wait", "machineclass/kept", "--for=condition=InUse=False", "--timeout=60s")
	u.apply(classed("heir", "kept", "", ""))
	u.awaitRunning(1)
	u.kubectl("wait", "machineclass/kept", "--for=condition=InUse", "--timeout=60s")
	u.kubectl("delete", "machineclass/kept", "--wait=false")
	u.kubectl("delete", "secret/cloud", "--timeout=60s")
	u.kubectl("get", "machineclass/kept")
	u.kubectl("delete", "machine", "heir")
	u.kubectl("wait", "machineclass/kept", "--for=delete", "--timeout=60s")
	u.awaitGone()
}
