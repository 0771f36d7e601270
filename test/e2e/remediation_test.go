package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// A fleet of 20, which is all there is. One that fails is replaced. Eight that worked and fail at
// once are not, and a condition says why. Two of them are taken away by hand and made anew. Then
// the other six are replaced one at a time. With -short it is a fleet of 5 of which two fail.
func TestSAFE4_SET4_AMeltdownIsNotReplaced(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name          string
		fleet, failed int
		held          bool
	}{
		{"5 percent", 20, 1, false},
		{"40 percent", 20, 8, true},
		{"2 of 5", 5, 2, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if testing.Short() != (tc.fleet == 5) {
				t.Skip("the other fleets show the same")
			}
			u, fleet := newUser(t), tc.fleet
			before := len(u.vmsEver())
			if !tc.held {
				u.failBoots(tc.failed)
			}
			u.apply(deployment("fleet", fleet, nil))
			if tc.held {
				u.awaitRunning(fleet)
				// The set is paused meanwhile. A failure that is seen 5 s before the others has its
				// machine replaced, and rightly so.
				u.kubectl("annotate", "machineset", "--all", clusterv1alpha1.PausedAnnotation+"=")
				for _, m := range u.machines()[:tc.failed] {
					u.change(*m.Spec.ProviderID, backendv1alpha1.VMChange_VM_CHANGE_FAIL)
				}
				eventually(t, "all of them to be Failed", func(context.Context) error {
					if n := len(u.failed()); n != tc.failed {
						return fmt.Errorf("%d are", n)
					}
					return nil
				})
				u.kubectl("annotate", "machineset", "--all", clusterv1alpha1.PausedAnnotation+"-")
				u.awaitSet(t, "RemediationAllowed to be False", func(set *clusterv1alpha1.MachineSet) bool {
					c := meta.FindStatusCondition(set.Status.Conditions, clusterv1alpha1.ConditionRemediationAllowed)
					return c != nil && c.Status == metav1.ConditionFalse && c.Reason == clusterv1alpha1.ReasonTooManyUnhealthy &&
						int(set.Status.ReadyReplicas) == fleet-tc.failed
				})
				u.awaitMeltdown(1)
				u.watchFor(3*time.Second, func(m *clusterv1alpha1.Machine) {
					if !m.DeletionTimestamp.IsZero() {
						t.Errorf("machine %s is replaced in a meltdown", m.Name)
					}
				})
				for _, m := range u.failed()[:2] {
					u.kubectl("delete", "machine", m.Name, "--wait=false")
				}
			}
			peak := u.keepExtremes()
			u.awaitRunning(fleet)
			if most, _ := peak(); most > fleet+1 && !tc.held || most > fleet+2 {
				t.Errorf("%d machines at once: more than one was replaced at a time", most)
			}
			if n := len(u.vmsEver()) - before; n != fleet+tc.failed {
				t.Errorf("%d VMs were made for %d machines of which %d failed", n, fleet, tc.failed)
			}
			u.awaitSet(t, "no condition RemediationAllowed", func(set *clusterv1alpha1.MachineSet) bool {
				return meta.FindStatusCondition(set.Status.Conditions, clusterv1alpha1.ConditionRemediationAllowed) == nil
			})
			u.awaitMeltdown(0)
		})
	}
}

// One tenant's template is broken: none of his machines ever came up, and they are most of the
// fleet. A machine of another tenant that worked and dies is replaced all the same.
func TestSAFE4_ABrokenTemplateKeepsNobodyElseFromRepair(t *testing.T) {
	tier.Long(t, "machines are replaced one at a time")
	t.Parallel()
	const machines, broken = 2, 5
	u := newUser(t)
	u.apply(deployment("works", machines, nil))
	u.awaitRunning(machines)
	u.failBoots(1000)
	u.apply(deployment("broken", broken, nil))
	eventually(t, "all of the broken template to have failed", func(context.Context) error {
		if n := len(u.failed()); n < broken {
			return fmt.Errorf("%d have", n)
		}
		return nil
	})
	u.awaitMeltdown(0)
	// The machine that takes its place has to boot.
	u.removeFaults()
	u.kubectl("annotate", "machineset", "--selector=pool=broken", clusterv1alpha1.PausedAnnotation+"=")
	var dies clusterv1alpha1.Machine
	for _, m := range u.machines() {
		if m.Labels["pool"] == "works" {
			dies = m
		}
	}
	u.change(*dies.Spec.ProviderID, backendv1alpha1.VMChange_VM_CHANGE_DELETE)
	eventually(t, "the dead machine to be replaced", func(context.Context) error {
		if m, found := u.find(dies.Name); found {
			return fmt.Errorf("machine %s is there still%s", m.Name, words(m.Status.Conditions))
		}
		return nil
	})
	eventually(t, "the other tenant's machines to work again", func(context.Context) error {
		running := 0
		for _, m := range u.machines() {
			if m.Labels["pool"] == "works" && m.Status.Phase == clusterv1alpha1.MachinePhaseRunning {
				running++
			}
		}
		if running != machines {
			return fmt.Errorf("%d of %d are Running", running, machines)
		}
		return nil
	})
	u.kubectl("delete", "machinedeployments", "--all", "--wait=false")
	u.awaitGone()
}

// awaitMeltdown waits until the metric that the alert MillwrightMeltdown looks at has the value.
func (u *user) awaitMeltdown(want float64) {
	u.t.Helper()
	eventually(u.t, fmt.Sprintf("millwright_fleet_meltdown to be %v", want), func(ctx context.Context) error {
		metrics, err := u.Metrics(ctx)
		if err != nil {
			return err
		}
		for _, m := range metrics["millwright_fleet_meltdown"].GetMetric() {
			if m.GetGauge().GetValue() == want {
				return nil
			}
		}
		return fmt.Errorf("it is %v", metrics["millwright_fleet_meltdown"])
	})
}

// failBoots has the next VMs fail while they boot.
func (u *user) failBoots(times int) {
	u.t.Helper()
	u.inject(&backendv1alpha1.Fault{
		Match:  &backendv1alpha1.FaultMatch{Operation: u.createVM()},
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS,
		Error:  &backendv1alpha1.FaultError{Message: "No valid host was found"},
		Times:  int32(times),
	})
}

// failed are the Machines that are Failed and not on their way out.
func (u *user) failed() []clusterv1alpha1.Machine {
	u.t.Helper()
	var failed []clusterv1alpha1.Machine
	for _, m := range u.machines() {
		if m.Status.Phase == clusterv1alpha1.MachinePhaseFailed && m.DeletionTimestamp.IsZero() {
			failed = append(failed, m)
		}
	}
	return failed
}

// awaitSet waits until the only MachineSet of the namespace is as it should be.
func (u *user) awaitSet(t *testing.T, what string, is func(*clusterv1alpha1.MachineSet) bool) {
	t.Helper()
	eventually(t, what, func(ctx context.Context) error {
		var sets clusterv1alpha1.MachineSetList
		if err := u.client.List(ctx, &sets, client.InNamespace(u.namespace)); err != nil {
			return err
		}
		if len(sets.Items) != 1 {
			return fmt.Errorf("there are %d sets", len(sets.Items))
		}
		if set := &sets.Items[0]; !is(set) {
			return fmt.Errorf("the set's status is %+v", set.Status)
		}
		return nil
	})
}

// An image that never boots: few VMs are made of it, and each time fewer.
func TestSET4_ABrokenImageIsTriedMoreAndMoreSeldom(t *testing.T) {
	tier.Long(t, "pauses between attempts are what it looks at")
	t.Parallel()
	u := newUser(t)
	before := len(u.vmsEver())
	u.failBoots(1000)
	u.apply(deployment("broken", 1, nil))
	u.awaitSet(t, "a longer pause after an attempt in vain", func(set *clusterv1alpha1.MachineSet) bool {
		c := meta.FindStatusCondition(set.Status.Conditions, clusterv1alpha1.ConditionReplicaFailure)
		return set.Status.Remediation != nil && set.Status.Remediation.Attempts == 1 && c != nil && strings.Contains(c.Message, "within 20s")
	})
	if n := len(u.vmsEver()) - before; n != 2 {
		t.Errorf("%d VMs were made, want the first and one in its place", n)
	}
}

// A failed machine that somebody wants to study stays, and is replaced when he has done so.
func TestLIFE12_PreservedMachine(t *testing.T) {
	tier.Long(t, "it waits for longer than a machine would be let be")
	t.Parallel()
	u := newUser(t)
	u.failBoots(1)
	u.apply(deployment("studied", 2, nil))
	eventually(t, "one machine to have failed and the other to run", func(context.Context) error {
		running := 0
		for _, m := range u.machines() {
			if m.Status.Phase == clusterv1alpha1.MachinePhaseRunning {
				running++
			}
		}
		if len(u.failed()) != 1 || running != 1 {
			return fmt.Errorf("%d failed, %d Running", len(u.failed()), running)
		}
		return nil
	})
	kept := u.failed()[0]
	u.kubectl("annotate", "machine", kept.Name, clusterv1alpha1.PreserveMachineAnnotation+"=")
	// Longer than it would have been let be.
	u.watchFor(11*time.Second, func(m *clusterv1alpha1.Machine) {
		if m.Name == kept.Name && !m.DeletionTimestamp.IsZero() {
			t.Error("the preserved machine is replaced")
		}
	})
	u.kubectl("annotate", "machine", kept.Name, clusterv1alpha1.PreserveMachineAnnotation+"-")
	u.awaitRunning(2)
	if _, found := u.find(kept.Name); found {
		t.Error("a machine that is preserved no longer is not replaced")
	}
}
