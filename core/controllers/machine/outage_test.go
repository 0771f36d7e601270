package machine

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// startup sets spec.nodeStartupTimeout.
func startup(limit time.Duration) func(*clusterv1alpha1.Machine) {
	return func(m *clusterv1alpha1.Machine) { m.Spec.NodeStartupTimeout = &metav1.Duration{Duration: limit} }
}

// TestLIFE7_JoinTimeout: a VM that does not become a Ready Node in time fails its machine.
func TestLIFE7_JoinTimeout(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a", startup(time.Second)), clusterv1alpha1.MachinePhaseFailed)
	c := b.awaitReason(m, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonJoinTimeout)
	if c.Message != "The VM has not become a Ready Node within 1s." || m.Status.FailureReason == nil ||
		*m.Status.FailureReason != clusterv1alpha1.ReasonJoinTimeout || *m.Status.FailureMessage != c.Message {
		t.Errorf("status %+v", m.Status)
	}
	b.remove(m)
	b.awaitGone(m)
	if creates, vms := b.cloud.count(); creates != 1 || vms != 0 {
		t.Errorf("%d creates, %d VMs left", creates, vms)
	}
}

// TestLIFE8_NodeGone: a Node that was deleted may come back; when it does not in time, its machine
// fails.
func TestLIFE8_NodeGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a", startup(time.Minute)), clusterv1alpha1.MachinePhaseProvisioned)
	node := b.newNode(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.remove(node)
	b.awaitReason(m, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonNodeMissing)
	node = b.newNode(m)
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.awaitReason(m, clusterv1alpha1.ConditionReady, clusterv1alpha1.ReasonMachineReady)
	b.change(m, func() { startup(time.Second)(m) })
	b.remove(node)
	b.awaitReason(m, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonJoinTimeout)
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseFailed)
	if m.Status.FailureReason != nil {
		t.Error("failureReason on a Machine that had a Node")
	}
	b.remove(m)
	b.awaitGone(m)
}

// TestSAFE3_DriverAway: nothing is late while its driver is away.
func TestSAFE3_DriverAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stop := b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a", startup(time.Hour)), clusterv1alpha1.MachinePhaseProvisioned)
	stop()
	other := b.newMachine("b", startup(time.Second))
	b.awaitReason(other, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonDriverUnavailable)
	b.change(m, func() { startup(time.Second)(m) })
	<-time.After(2 * time.Second) // Longer than either has: nothing may happen.
	b.awaitReason(other, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonWaitingForNode)
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
	b.newNode(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.remove(other)
	b.remove(m)
	b.serve()
	b.awaitGone(m)
	b.awaitGone(other)
}

// TestSAFE3_AccountChanged: credentials that open another account fail nothing; one condition says
// why, and it goes when they are mended.
func TestSAFE3_AccountChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	running := b.awaitPhase(b.newMachine("a"), clusterv1alpha1.MachinePhaseProvisioned)
	b.newNode(running)
	b.awaitPhase(running, clusterv1alpha1.MachinePhaseRunning)
	booting := b.awaitPhase(b.newMachine("b", startup(time.Hour)), clusterv1alpha1.MachinePhaseProvisioned)
	b.cloud.change(func() {
		b.cloud.blind = refusal(codes.FailedPrecondition, "ACCOUNT_CHANGED", "The credentials open the account blue.")
	})
	for _, m := range []*clusterv1alpha1.Machine{running, booting} {
		c := b.awaitReason(m, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonAccountChanged)
		if c.Status != metav1.ConditionTrue {
			t.Errorf("%+v", c)
		}
	}
	b.change(booting, func() { startup(time.Second)(booting) })
	<-time.After(3 * time.Second) // Longer than the machine that boots has: nothing may happen.
	b.awaitReason(booting, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonWaitingForNode)
	b.awaitReason(running, clusterv1alpha1.ConditionReady, clusterv1alpha1.ReasonMachineReady)
	b.newNode(booting)
	b.cloud.change(func() { b.cloud.blind = nil })
	b.awaitReason(running, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonInstanceRunning)
	b.awaitPhase(booting, clusterv1alpha1.MachinePhaseRunning)
	for _, m := range []*clusterv1alpha1.Machine{running, booting} {
		b.remove(m)
		b.awaitGone(m)
	}
}
