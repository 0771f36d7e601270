package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// withStrategy is deployment with a strategy that has no bounds.
func withStrategy(kind, name string, replicas int, change map[string]string) string {
	return strings.Replace(deployment(name, replicas, change),
		"    type: RollingUpdate\n    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}\n", "    type: "+kind+"\n", 1)
}

func (u *user) awaitProgressing(name, reason string) {
	u.t.Helper()
	u.kubectl("wait", "machinedeployment/"+name, "--timeout=90s",
		`--for=jsonpath={.status.conditions[?(@.type=="Progressing")].reason}=`+reason)
}

// rolledOut waits, as a user does, until the rollout is complete.
func (u *user) rolledOut(name string) {
	u.t.Helper()
	if out, err := u.plugin("rollout", "status", name); err != nil {
		u.t.Fatalf("rollout status: %v\n%s", err, out)
	}
}

// To recreate, every old machine is gone before there is a new one.
func TestROL2_Recreate(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(withStrategy("Recreate", "recreated", 3, nil))
	u.awaitRunning(3)
	var together atomic.Bool
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		kubelets := map[string]string{}
		u.eachEvent(ctx, func(m *clusterv1alpha1.Machine, gone bool) {
			kubelets[m.Name] = m.Spec.Versions.Kubelet
			if gone {
				delete(kubelets, m.Name)
			}
			for _, kubelet := range kubelets {
				together.Store(together.Load() || kubelet != m.Spec.Versions.Kubelet && !gone)
			}
		})
	}()
	old := u.uids()
	u.apply(withStrategy("Recreate", "recreated", 3, map[string]string{"kubelet": "1.34.2"}))
	u.rolledOut("recreated")
	u.awaitRunning(3)
	stop()
	<-done
	if together.Load() {
		t.Error("a new machine was there beside an old one")
	}
	for _, uid := range u.uids() {
		if strings.Contains(strings.Join(old, " "), uid) {
			t.Errorf("machine uid %s has the old template still", uid)
		}
	}
}

// With OnDelete an old machine is replaced when its user deletes it, and not before.
func TestROL2_OnDelete(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(withStrategy("OnDelete", "patient", 2, nil))
	u.awaitRunning(2)
	old := u.machines()
	u.apply(withStrategy("OnDelete", "patient", 2, map[string]string{"kubelet": "1.34.2"}))
	u.awaitProgressing("patient", clusterv1alpha1.ReasonDeletionAwaited)
	u.kubectl("delete", "machine", old[0].Name)
	u.kubectl("wait", "machinedeployment/patient", "--for=jsonpath={.status.updatedReplicas}=1", "--timeout=60s")
	u.awaitRunning(2)
	if _, there := u.find(old[1].Name); !there {
		t.Error("a machine that nobody deleted was replaced, too")
	}
	out, err := u.plugin("rollout", "status", "patient")
	if err != nil || !strings.Contains(out, "1 of 2 machines have the template") {
		t.Errorf("rollout status: %v\n%s", err, out)
	}
	u.kubectl("delete", "machine", old[1].Name)
	u.rolledOut("patient")
	u.awaitRunning(2)
	u.checkOneVMEach()
}

// The brake: an annotated MachineDeployment is left alone, and its sets go on.
func TestOPS10_PausedMachineDeployment(t *testing.T) {
	tier.Long(t, "it rolls out, and sets and Machines show the same")
	t.Parallel()
	u := newSharingUser(t)
	u.apply(deployment("braked", 2, nil))
	u.awaitRunning(2)
	sets := u.kubectl("get", "machinesets", "-o", "jsonpath={.items[*].spec}")
	u.kubectl("annotate", "machinedeployment", "braked", clusterv1alpha1.PausedAnnotation+"=true")
	u.kubectl("wait", "machinedeployment/braked", "--for=condition=Paused", "--timeout=30s")
	u.apply(deployment("braked", 3, map[string]string{"kubelet": "1.34.2"}))
	u.kubectl("delete", "machine", u.machines()[0].Name)
	u.awaitRunning(2)
	if now := u.kubectl("get", "machinesets", "-o", "jsonpath={.items[*].spec}"); now != sets {
		t.Errorf("its sets were changed from\n%s\nto\n%s", sets, now)
	}
	u.kubectl("annotate", "machinedeployment", "braked", clusterv1alpha1.PausedAnnotation+"-")
	u.rolledOut("braked")
	u.awaitRunning(3)
	eventually(t, "the condition to go", func(context.Context) error {
		if out := u.kubectl("get", "machinedeployment", "braked", "-o", "jsonpath={.status.conditions[*].type}"); strings.Contains(out, "Paused") {
			return fmt.Errorf("there are %s", out)
		}
		return nil
	})
}
