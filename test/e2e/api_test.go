package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// seeds are the manifests that users of MetaKube have, as they have them.
const seeds = "../apischema/testdata/seeds"

// A manifest of MetaKube's documentation applies unchanged. Nothing serves its cloudProvider: its
// Machines say so, by name.
func TestAPI1_SeedAppliesUnchanged(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	manifest, err := os.ReadFile(filepath.Join(seeds, "metakube-2024.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// It names the namespace kube-system, and is applied there.
	u.namespace = "kube-system"
	u.apply(string(manifest))
	u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonDriverNotFound, `"openstack"`)
	// It is of 2024, and so is its kubelet.
	eventually(t, "both Machines to warn of their old kubelet", func(context.Context) error {
		machines := u.machines()
		if len(machines) != 2 {
			return fmt.Errorf("there are %d", len(machines))
		}
		for _, m := range machines {
			if text := words(m.Status.Conditions); !strings.Contains(text, clusterv1alpha1.ReasonKubeletTooOld) || !strings.Contains(text, "1.30.3") {
				return fmt.Errorf("machine %s does not%s", m.Name, text)
			}
		}
		return nil
	})
}

// A kubelet that is newer than the API server gets no VM, and the Machine says what to use.
func TestAPI3_NewerKubeletIsRefused(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(deployment("tomorrow", 1, map[string]string{"kubelet": "1.99.0"}))
	u.awaitCondition(clusterv1alpha1.ConditionBootstrapReady, clusterv1alpha1.ReasonBootstrapInvalid, "spec.versions.kubelet: 1.99.0")
	if ever := u.vmsEver()[u.uids()[0]]; ever != 0 {
		t.Errorf("it has %d VMs, want none", ever)
	}
}

// What neither the schema nor the driver offline can know stands in a condition that names it.
func TestAPI3_BadSpecsNameTheField(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change map[string]string
		reason string
		says   string
	}{
		"unknown provider": {map[string]string{"provider": "nimbus"}, clusterv1alpha1.ReasonDriverNotFound, `"nimbus"`},
		"unknown flavor":   {map[string]string{"flavor": "giant"}, clusterv1alpha1.ReasonDependencyNotFound, "giant"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := newSharingUser(t)
			u.apply(deployment("wrong", 1, tc.change))
			u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, tc.reason, tc.says)
			if n := len(u.machines()); n != 1 {
				t.Errorf("there are %d machines, want 1: what is wrong with the spec is wrong with each", n)
			}
		})
	}
}

// replicas is written at creation, and kept when the user drops the field.
func TestAPI2_ReplicasAreWrittenOnce(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	manifest := strings.Replace(deployment("sized", 9, nil), "  replicas: 9\n", "", 1)
	if out, err := u.try([]byte(manifest), "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
	u.awaitRunning(1)
	u.kubectl("scale", "machinedeployment", "sized", "--replicas=2")
	u.awaitRunning(2)
	if out, err := u.try([]byte(manifest), "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
	if got := u.kubectl("get", "machinedeployment", "sized", "-o", "jsonpath={.spec.replicas}"); got != "2" {
		t.Errorf("replicas is %q after the manifest without it was applied again, want 2", got)
	}
}

// kubectl wait works on the conditions of every kind, and kubectl get shows what an operator wants
// to know.
func TestAPI8_ConditionsAndColumns(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(deployment("told", 2, nil))
	u.kubectl("wait", "machinedeployment/told", "--for=condition=Available", "--timeout=60s")
	u.kubectl("wait", "machinedeployment/told", "--for=condition=Progressing=True", "--timeout=60s")
	u.kubectl("wait", "machinesets", "--all", "--for=condition=Available", "--timeout=60s")
	u.kubectl("wait", "machines", "--all", "--for=condition=Ready", "--timeout=60s")
	for _, args := range [][]string{{"get", "md"}, {"get", "ms"}, {"get", "ma"}} {
		if out := u.kubectl(args...); !strings.Contains(out, "told") {
			t.Errorf("kubectl %s shows\n%s", strings.Join(args, " "), out)
		}
	}
	if out := u.kubectl("get", "events"); !strings.Contains(out, "machine/told-") {
		t.Errorf("no event tells of the machines:\n%s", out)
	}
}

// /scale works on MachineSets as on MachineDeployments, and standalone sets and Machines work.
func TestSET3_StandaloneSetAndMachine(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	set := deployment("alone", 2, nil)
	set = strings.Replace(set, "kind: MachineDeployment", "kind: MachineSet", 1)
	set = strings.Replace(set, "  strategy:\n    type: RollingUpdate\n    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}\n", "", 1)
	u.apply(set)
	u.awaitRunning(2)
	u.kubectl("scale", "machineset", "alone", "--replicas=3")
	u.awaitRunning(3)
	u.kubectl("scale", "machineset", "alone", "--replicas=0")
	u.awaitGone()
	u.apply(`apiVersion: cluster.k8s.io/v1alpha1
kind: Machine
metadata:
  name: single
spec:
  versions: {kubelet: 1.34.3}
  providerSpec:
    value:
      cloudProvider: fake
      cloudProviderSpec: {flavor: small, image: ubuntu-24.04}
      operatingSystem: ubuntu
`)
	u.awaitRunning(1)
	u.checkOneVMEach()
	u.kubectl("delete", "machine", "single")
}

// A Machine that lost its labels is let go and replaced; one that matches and has no owner is taken
// in.
func TestSET3_ReleaseAndAdoption(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(deployment("owned", 2, nil))
	u.awaitRunning(2)
	stray := u.machines()[0]
	u.kubectl("label", "machine", stray.Name, "pool-")
	u.awaitRunning(3)
	if m, _ := u.find(stray.Name); len(m.OwnerReferences) != 0 {
		t.Errorf("the stray machine is owned still: %v", m.OwnerReferences)
	}
	u.kubectl("label", "machine", stray.Name, "pool=owned")
	eventually(t, "one of three machines to go", func(context.Context) error {
		if n := len(u.machines()); n != 2 {
			return fmt.Errorf("there are %d machines", n)
		}
		return nil
	})
	u.awaitRunning(2)
}

// What the manager may not read, it cannot read: it works as its ServiceAccount with the shipped
// RBAC.
func TestOPS5_ManagerHasNoMoreRightsThanItNeeds(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.kubectl("create", "secret", "generic", "private", "--from-literal=key=value")
	as := "--kubeconfig=" + u.ManagerKubeconfig()
	out, err := u.try(nil, "get", "secret", "private", as)
	if err == nil || !strings.Contains(out, "Forbidden") {
		t.Errorf("the manager can read a Secret: %v\n%s", err, out)
	}
	for _, args := range [][]string{{"delete", "namespaces"}, {"create", "pods"}, {"get", "configmaps"}, {"*", "*"}} {
		if out, err := u.try(nil, "auth", "can-i", args[0], args[1], as); err == nil {
			t.Errorf("the manager can %s %s: %s", args[0], args[1], out)
		}
	}
	for _, args := range [][]string{{"update", "machines", "--subresource=status"}, {"create", "pods", "--subresource=eviction"}, {"patch", "nodes"}} {
		if out, err := u.try(nil, append([]string{"auth", "can-i", as}, args...)...); err != nil {
			t.Errorf("the manager cannot %s: %v %s", strings.Join(args, " "), err, out)
		}
	}
}
