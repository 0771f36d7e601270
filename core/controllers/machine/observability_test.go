package machine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/driver"
)

// TestStopwatch: time counts between good readings, and begins anew after each break.
func TestStopwatch(t *testing.T) {
	const settle = 10 * time.Second
	type reading struct {
		after time.Duration
		good  bool
	}
	good, bad := reading{askInterval, true}, reading{askInterval, false}
	for name, c := range map[string]struct {
		readings []reading
		want     time.Duration
		runs     bool
	}{
		"nothing was read":                       {},
		"the first time is not enough":           {readings: []reading{good}},
		"nor is settling":                        {readings: []reading{good, good, good, good, good}},
		"after that it counts":                   {readings: []reading{good, good, good, good, good, good, good}, want: askInterval, runs: true},
		"what was bad at its end does not":       {readings: []reading{good, good, good, good, good, good, good, bad}, want: askInterval},
		"nor what comes after, until it settles": {readings: []reading{good, good, good, good, good, good, good, bad, good, good}, want: askInterval},
		"nor a gap": {
			readings: []reading{good, good, good, good, good, good, good, {time.Hour, true}, good}, want: askInterval,
		},
		"a slow reading is no gap": {
			readings: []reading{good, good, good, good, good, good, {3 * askInterval, true}}, want: 3 * askInterval, runs: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s stopwatch
			now := time.Now()
			for _, r := range c.readings {
				now = now.Add(r.after)
				s.read(now, r.good, settle)
			}
			if s.ran() != c.want || s.runs() != c.runs {
				t.Errorf("ran %s, runs %t; want %s, %t", s.ran(), s.runs(), c.want, c.runs)
			}
		})
	}
}

// TestSAFE3_ClocksStandStill: no clock runs while the API server is away, none of a driver's while
// that one is.
func TestSAFE3_ClocksStandStill(t *testing.T) {
	drivers, err := driver.New(driver.Config{ClusterUID: "c", Log: logr.Discard(), Registry: prometheus.NewRegistry()},
		[]driver.Target{{Name: provider, Address: "unix:///nowhere"}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMeasures(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakeClock(time.Now())
	var away error
	reporting := true
	o := &observability{
		clock: clock, settle: time.Second, drivers: drivers, measures: m, log: logr.Discard(), cloud: map[string]*stopwatch{},
		ask:        []func(context.Context) error{func(context.Context) error { return away }},
		heartbeats: &heartbeats{read: func(context.Context, time.Time) bool { return reporting }},
	}
	look := func(times int) {
		for range times {
			o.heartbeats.want(clock.Now())
			o.look(t.Context())
			clock.Step(askInterval)
		}
	}
	d, err := drivers.For(provider)
	if err != nil {
		t.Fatal(err)
	}
	look(10)
	first := o.reading(d)
	if first.Cluster == 0 || first.Nodes == 0 || first.Cloud != 0 || first.Runs || first.Away == "" {
		t.Errorf("with a driver that is away the clocks show %+v", first)
	}
	away = errors.New("refused")
	look(10)
	if second := o.reading(d); second.Cluster != first.Cluster || second.Nodes != first.Nodes || second.Away != "" {
		t.Errorf("while the API server is away the clocks show %+v, before %+v", second, first)
	}
	away = nil
	look(10)
	if third := o.reading(d); third.Cluster <= first.Cluster {
		t.Errorf("after it came back the clocks show %+v, before %+v", third, first)
	}
	reporting = false
	last := o.reading(d)
	look(10)
	if silent := o.reading(d); silent.Cluster <= last.Cluster || silent.Nodes-last.Nodes > leaseInterval || last.Nodes <= first.Nodes {
		t.Errorf("while no Node reports the clocks show %+v, before %+v", silent, last)
	}
	if unknown := o.reading(nil); unknown.Runs || unknown.Cloud != 0 {
		t.Errorf("without a driver the clocks show %+v", unknown)
	}
}

// startup sets spec.nodeStartupTimeout.
func startup(limit time.Duration) func(*clusterv1alpha1.Machine) {
	return func(m *clusterv1alpha1.Machine) { m.Spec.NodeStartupTimeout = &metav1.Duration{Duration: limit} }
}

// TestLIFE7_JoinTimeout: a VM that does not become a Ready Node in time fails its machine.
func TestLIFE7_JoinTimeout(t *testing.T) {
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
	b := newBench(t)
	stop := b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a", startup(4*time.Second)), clusterv1alpha1.MachinePhaseProvisioned)
	stop()
	other := b.newMachine("b", startup(time.Second))
	b.awaitReason(other, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonDriverUnavailable)
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
