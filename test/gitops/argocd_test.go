package gitops

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/cmd/rollout"
)

// script is the Lua with which Argo CD judges objects of a kind.
func script(t *testing.T, kind string) string {
	_ = os.Getenv("MILLWRIGHT_INPUTS") // so that Go runs the test again when they change: tools/inputs.sh
	t.Helper()
	found, err := Script("../../deploy/argocd/argocd-cm.yaml", kind)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func condition(kind string, is bool, reason string) metav1.Condition {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "because of " + reason}
}

// TestOPS6_ArgoSaysWhatRolloutStatusSays: of every MachineDeployment Argo CD tells the same as
// `kubectl millwright rollout status`.
func TestOPS6_ArgoSaysWhatRolloutStatusSays(t *testing.T) {
	health := script(t, "MachineDeployment")
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		few := rapid.Int32Range(0, 3)
		md := &clusterv1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}}
		md.Spec.Replicas = new(few.Draw(rt, "replicas"))
		md.Spec.Paused = rapid.IntRange(0, 5).Draw(rt, "paused") == 0
		md.Status.ObservedGeneration = rapid.SampledFrom([]int64{2, 2, 2, 1}).Draw(rt, "observed")
		md.Status.Replicas, md.Status.UpdatedReplicas = few.Draw(rt, "all"), few.Draw(rt, "updated")
		md.Status.AvailableReplicas = few.Draw(rt, "available")
		progress := rapid.SampledFrom([]string{"", "", "", clusterv1alpha1.ReasonProgressDeadlineExceeded, clusterv1alpha1.ReasonDeletionAwaited}).Draw(rt, "progress")
		if progress != "" {
			md.Status.Conditions = append(md.Status.Conditions, condition(clusterv1alpha1.ConditionProgressing, progress == clusterv1alpha1.ReasonDeletionAwaited, progress))
		}
		if rapid.IntRange(0, 9).Draw(rt, "braked") == 0 {
			md.Status.Conditions = append(md.Status.Conditions, condition(clusterv1alpha1.ConditionPaused, true, "PausedByAnnotation"))
		}
		status, message, err := Judge(health, md)
		if err != nil {
			rt.Fatal(err)
		}
		text, done, failed := rollout.Verdict(md)
		want := "Progressing"
		switch {
		case failed != nil:
			want = "Degraded"
		case done:
			want = "Healthy"
		case strings.HasPrefix(text, "because of") || strings.Contains(text, "paused"):
			want = "Suspended"
		}
		if status != want || message == "" {
			rt.Fatalf("Argo says %s: %s; rollout status says %q, done %t, %v", status, message, text, done, failed)
		}
		seen[status]++
	})
	if len(seen) != 4 {
		t.Errorf("seen were only %v", seen)
	}
}

// TestOPS6_ArgoJudgesEveryKind shows each verdict of the other kinds.
func TestOPS6_ArgoJudgesEveryKind(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "one", Generation: 2}
	set := func(replicas, available int32, conditions ...metav1.Condition) *clusterv1alpha1.MachineSet {
		ms := &clusterv1alpha1.MachineSet{ObjectMeta: meta}
		ms.Spec.Replicas = new(int32(3))
		ms.Status = clusterv1alpha1.MachineSetStatus{ObservedGeneration: 2, Replicas: replicas, AvailableReplicas: available, Conditions: conditions}
		return ms
	}
	machine := func(phase clusterv1alpha1.MachinePhase, conditions ...metav1.Condition) *clusterv1alpha1.Machine {
		m := &clusterv1alpha1.Machine{ObjectMeta: meta}
		m.Status.Phase, m.Status.Conditions = phase, conditions
		return m
	}
	going := machine(clusterv1alpha1.MachinePhaseDeleting, condition(clusterv1alpha1.ConditionReady, true, "MachineReady"))
	going.DeletionTimestamp = new(metav1.Now())
	check := func(observed int64, conditions ...metav1.Condition) *clusterv1alpha1.MachineHealthCheck {
		c := &clusterv1alpha1.MachineHealthCheck{ObjectMeta: meta}
		c.Status.ObservedGeneration, c.Status.Conditions = observed, conditions
		return c
	}
	stale := set(3, 3)
	stale.Status.ObservedGeneration = 1
	for name, tc := range map[string]struct {
		kind, want string
		object     any
	}{
		"a set that has all":                  {"MachineSet", "Healthy", set(3, 3)},
		"a set that lacks one":                {"MachineSet", "Progressing", set(3, 2)},
		"a set that has one too many":         {"MachineSet", "Progressing", set(4, 3)},
		"a set that has not seen its size":    {"MachineSet", "Progressing", stale},
		"a set that is frozen":                {"MachineSet", "Degraded", set(9, 3, condition(clusterv1alpha1.ConditionFrozen, true, "Overshoot"))},
		"a set that is paused":                {"MachineSet", "Suspended", set(3, 2, condition(clusterv1alpha1.ConditionPaused, true, "PausedByAnnotation"))},
		"a machine of which nothing is known": {"Machine", "Progressing", machine("")},
		"a machine that is Ready":             {"Machine", "Healthy", machine(clusterv1alpha1.MachinePhaseRunning, condition(clusterv1alpha1.ConditionReady, true, "MachineReady"))},
		"a machine that waits for quota":      {"Machine", "Progressing", machine(clusterv1alpha1.MachinePhaseProvisioning, condition(clusterv1alpha1.ConditionReady, false, "QuotaExceeded"))},
		"a machine that has failed":           {"Machine", "Degraded", machine(clusterv1alpha1.MachinePhaseFailed, condition(clusterv1alpha1.ConditionReady, false, "JoinTimeout"))},
		"a machine that is paused":            {"Machine", "Suspended", machine(clusterv1alpha1.MachinePhaseRunning, condition(clusterv1alpha1.ConditionPaused, true, "PausedByAnnotation"))},
		"a machine that is deleted":           {"Machine", "Progressing", going},
		"a check that is new":                 {"MachineHealthCheck", "Progressing", check(0)},
		"a check that was changed":            {"MachineHealthCheck", "Progressing", check(1, condition(clusterv1alpha1.ConditionRemediationAllowed, true, "Allowed"))},
		"a check that replaces":               {"MachineHealthCheck", "Healthy", check(2, condition(clusterv1alpha1.ConditionRemediationAllowed, true, "Allowed"))},
		"a check that spares":                 {"MachineHealthCheck", "Degraded", check(2, condition(clusterv1alpha1.ConditionRemediationAllowed, false, "TooManyUnhealthy"))},
	} {
		status, message, err := Judge(script(t, tc.kind), tc.object)
		if err != nil || status != tc.want || message == "" {
			t.Errorf("%s: %s: %q (%v), want %s", name, status, message, err, tc.want)
		}
	}
}
