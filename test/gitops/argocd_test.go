// Package gitops tests what GitOps tools make of Millwright's objects.
package gitops

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/cmd/rollout"
)

// script is the Lua with which Argo CD judges objects of a kind.
func script(t *testing.T, kind string) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/argocd/argocd-cm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var patch struct{ Data map[string]string }
	if err := yaml.UnmarshalStrict(text, &patch); err != nil {
		t.Fatal(err)
	}
	found := patch.Data["resource.customizations.health.cluster.k8s.io_"+kind]
	if found == "" {
		t.Fatalf("there is no health of %s", kind)
	}
	return found
}

// judge runs a script as Argo CD does: the object is the global obj, the result a table, and there
// are no libraries but these three.
// https://argo-cd.readthedocs.io/en/stable/operator-manual/health/
func judge(script string, object any) (status, message string, err error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return "", "", err
	}
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return "", "", err
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}
	state.SetGlobal("obj", value(state, plain))
	if err := state.DoString(script); err != nil {
		return "", "", err
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", "", errors.New("the script returns no table")
	}
	return lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message")), nil
}

// value is JSON as Lua has it.
func value(state *lua.LState, from any) lua.LValue {
	switch from := from.(type) {
	case map[string]any:
		table := state.NewTable()
		for k, v := range from {
			table.RawSetString(k, value(state, v))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, v := range from {
			table.Append(value(state, v))
		}
		return table
	case string:
		return lua.LString(from)
	case float64:
		return lua.LNumber(from)
	case bool:
		return lua.LBool(from)
	}
	return lua.LNil
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
		status, message, err := judge(health, md)
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
		status, message, err := judge(script(t, tc.kind), tc.object)
		if err != nil || status != tc.want || message == "" {
			t.Errorf("%s: %s: %q (%v), want %s", name, status, message, err, tc.want)
		}
	}
}
