package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// healthCheck is a MachineHealthCheck of a pool; more are further fields of its spec.
func healthCheck(name, pool, more string) string {
	return fmt.Sprintf(`apiVersion: cluster.k8s.io/v1alpha1
kind: MachineHealthCheck
metadata:
  name: %s
spec:
  selector:
    matchLabels: {pool: %s}
  unhealthyNodeConditions:
  - {type: Ready, status: "False", timeout: 3s}
  - {type: DiskPressure, status: "True", timeout: 3s}
%s`, name, pool, more)
}

// report has a machine's Node report a condition, as its kubelet would.
func (u *user) report(machine string, typ corev1.NodeConditionType, status corev1.ConditionStatus) {
	u.t.Helper()
	node, err := u.nodeOf(machine)
	if err != nil {
		u.t.Fatal(err)
	}
	now := time.Now().UTC().Format(time.RFC3339)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []map[string]any{{
		"type": typ, "status": status, "reason": "Test", "lastHeartbeatTime": now, "lastTransitionTime": now,
	}}}})
	if err != nil {
		u.t.Fatal(err)
	}
	u.kubectl("patch", "node", node.Name, "--subresource=status", "--type=strategic", "-p", string(patch))
}

// awaitReplaced waits until a machine is gone, and n are Running that are no other than before but
// for that one.
func (u *user) awaitReplaced(name string, n int, before []string) {
	u.t.Helper()
	eventually(u.t, "machine "+name+" to be replaced", func(context.Context) error {
		if m, found := u.find(name); found {
			return fmt.Errorf("it is there still%s", words(m.Status.Conditions))
		}
		return nil
	})
	u.awaitRunning(n)
	for _, other := range before {
		if _, found := u.find(other); !found && other != name {
			u.t.Errorf("machine %s is gone, too", other)
		}
	}
}

// A kubelet that hangs, a full disk and a VM that is switched off: each is replaced by its set, and
// nothing else is. Events and the check tell of it.
func TestLIFE11_WhatAHealthCheckFindsIsReplaced(t *testing.T) {
	t.Parallel()
	const size = 4
	u := newUser(t)
	u.apply(deployment("checked", size, nil))
	u.apply(healthCheck("checked", "checked", ""))
	u.awaitRunning(size)
	ever := len(u.vmsEver())
	for i, ail := range []func(m *clusterv1alpha1.Machine){
		func(m *clusterv1alpha1.Machine) { u.heartbeat(m.Name, "PLEG is not healthy") },
		func(m *clusterv1alpha1.Machine) { u.report(m.Name, corev1.NodeDiskPressure, corev1.ConditionTrue) },
		func(m *clusterv1alpha1.Machine) {
			u.change(*m.Spec.ProviderID, backendv1alpha1.VMChange_VM_CHANGE_STOP)
		},
	} {
		before := u.names()
		sick := u.machines()[0]
		ail(&sick)
		u.awaitReplaced(sick.Name, size, before)
		if n := len(u.vmsEver()) - ever; n != i+1 {
			t.Errorf("%d VMs were made for %d machines that fell ill", n, i+1)
		}
		eventually(t, "an event about the machine", func(context.Context) error {
			out, err := u.try(nil, "get", "events", "--field-selector", "reason="+clusterv1alpha1.ReasonUnhealthyNode+",involvedObject.name="+sick.Name)
			if err != nil || !strings.Contains(out, "MachineHealthCheck checked") {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	u.awaitCheck("checked", size, size, clusterv1alpha1.ReasonWithinLimits)
}

// awaitCheck waits for what the status of a check says.
func (u *user) awaitCheck(name string, expected, healthy int32, reason string) {
	u.t.Helper()
	eventually(u.t, fmt.Sprintf("the check %s to be %s", name, reason), func(context.Context) error {
		var check clusterv1alpha1.MachineHealthCheck
		u.get(name, &check)
		c := apimeta.FindStatusCondition(check.Status.Conditions, clusterv1alpha1.ConditionRemediationAllowed)
		if c == nil || c.Reason != reason || check.Status.ExpectedMachines != expected || check.Status.CurrentHealthy != healthy {
			return fmt.Errorf("its status is %+v", check.Status)
		}
		return nil
	})
}

// awaitRemediation waits until machines have that reason of OwnerRemediated; empty for none.
func (u *user) awaitRemediation(names []string, reason string) {
	u.t.Helper()
	eventually(u.t, fmt.Sprintf("%q of %d machines", reason, len(names)), func(context.Context) error {
		for _, m := range u.machines() {
			c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionOwnerRemediated)
			if slices.Contains(names, m.Name) && (c == nil) == (reason != "") || c != nil && slices.Contains(names, m.Name) && c.Reason != reason {
				return fmt.Errorf("machine %s says%s", m.Name, words(m.Status.Conditions))
			}
		}
		return nil
	})
}

// Checks of overlapping selectors, each with a limit of its own: with more unhealthy than both
// allow nothing is replaced, and what is spared says why. What one of them allows is replaced, one
// at a time. With 40 % unhealthy the limit of the whole fleet stops all of it.
func TestLIFE11_SAFE4_ManyUnhealthyMachinesAreSpared(t *testing.T) {
	tier.Long(t, "machines are replaced one at a time")
	t.Parallel()
	const size = 10
	u := newUser(t)
	u.apply(deployment("many", size, nil))
	u.awaitRunning(size)
	u.apply(healthCheck("fifth", "many", "  maxUnhealthy: 20%\n"))
	u.apply(healthCheck("tenth", "many", "  unhealthyRange: \"[1-1]\"\n"))
	u.awaitCheck("fifth", size, size, clusterv1alpha1.ReasonWithinLimits)
	sick := u.names()[:3]
	for _, name := range sick {
		u.report(name, corev1.NodeReady, corev1.ConditionFalse)
	}
	u.awaitCheck("fifth", size, size-3, clusterv1alpha1.ReasonTooManyUnhealthy)
	u.awaitCheck("tenth", size, size-3, clusterv1alpha1.ReasonTooManyUnhealthy)
	u.awaitRemediation(sick, clusterv1alpha1.ReasonTooManyUnhealthy)
	if out := u.kubectl("get", "mhc", "fifth", "-o", "wide"); !strings.Contains(out, "20%") || !strings.Contains(out, "spec.maxUnhealthy is 20%") {
		t.Errorf("kubectl shows\n%s", out)
	}
	u.staysAsItIs(3 * time.Second)

	// One recovers. Two of ten are what one of the checks allows.
	peak := u.keepExtremes()
	u.report(sick[0], corev1.NodeReady, corev1.ConditionTrue)
	u.awaitRemediation(sick[:1], "")
	for _, name := range sick[1:] {
		u.awaitReplaced(name, size, nil)
	}
	if most, _ := peak(); most > size+1 {
		t.Errorf("%d machines at once: more than one was replaced at a time", most)
	}

	// Of both checks' limits only the fleet's is left.
	u.kubectl("delete", "mhc", "tenth")
	u.kubectl("patch", "mhc", "fifth", "--type=merge", "-p", `{"spec":{"maxUnhealthy":null}}`)
	sick = u.names()[:4]
	u.kubectl("annotate", "machineset", "--all", clusterv1alpha1.PausedAnnotation+"=")
	for _, name := range sick {
		u.report(name, corev1.NodeReady, corev1.ConditionFalse)
	}
	u.awaitRemediation(sick, clusterv1alpha1.ReasonWaitingForRemediation)
	u.kubectl("annotate", "machineset", "--all", clusterv1alpha1.PausedAnnotation+"-")
	u.awaitSet(t, "RemediationAllowed to be False", func(set *clusterv1alpha1.MachineSet) bool {
		c := apimeta.FindStatusCondition(set.Status.Conditions, clusterv1alpha1.ConditionRemediationAllowed)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == clusterv1alpha1.ReasonTooManyUnhealthy
	})
	u.staysAsItIs(3 * time.Second)
	// Paused, since as soon as two are well the limit allows that the other two are replaced.
	u.kubectl("annotate", "machineset", "--all", clusterv1alpha1.PausedAnnotation+"=")
	for _, name := range sick {
		u.report(name, corev1.NodeReady, corev1.ConditionTrue)
	}
	u.awaitRemediation(sick, "")
	u.kubectl("annotate", "machineset", "--all", clusterv1alpha1.PausedAnnotation+"-")
	u.awaitRunning(size)
	u.staysAsItIs(3 * time.Second)
	for _, name := range sick {
		if _, found := u.find(name); !found {
			t.Errorf("machine %s was replaced after it had become well", name)
		}
	}
}

// staysAsItIs looks for a while whether a machine is deleted.
func (u *user) staysAsItIs(long time.Duration) {
	u.t.Helper()
	u.watchFor(long, func(m *clusterv1alpha1.Machine) {
		if !m.DeletionTimestamp.IsZero() {
			u.t.Errorf("machine %s is replaced", m.Name)
		}
	})
}
