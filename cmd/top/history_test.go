package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/cmd/tree"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func owned(name, owner string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "team", Name: name, UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{{UID: types.UID(owner), Controller: new(true)}},
	}
}

// fleet has a deployment of 6 with so many machines, the first of them ready, and one that nobody
// owns.
func fleet(first, end, ready int, outdated int32) tree.Fleet {
	md := clusterv1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "web"}}
	md.Spec.Replicas = new(int32(6))
	md.Status = clusterv1alpha1.MachineDeploymentStatus{
		Replicas: int32(end - first), UpdatedReplicas: int32(end-first) - outdated, AvailableReplicas: int32(ready),
	}
	f := tree.Fleet{
		Deployments: []clusterv1alpha1.MachineDeployment{md, {ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "db", UID: "db"}}},
		Sets:        []clusterv1alpha1.MachineSet{{ObjectMeta: owned("set", "web")}, {ObjectMeta: metav1.ObjectMeta{UID: "lone"}}},
		Machines:    []clusterv1alpha1.Machine{{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "alone", UID: "alone"}}},
	}
	for i := first; i < end; i++ {
		m := clusterv1alpha1.Machine{ObjectMeta: owned(fmt.Sprint("m", i), "set")}
		m.Status.Phase = clusterv1alpha1.MachinePhaseProvisioning
		if i < first+ready {
			m.Status.Phase = clusterv1alpha1.MachinePhaseRunning
			apimeta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Test"})
		}
		f.Machines = append(f.Machines, m)
	}
	return f
}

// Rates are those of the last minute, and the time left follows from them.
func TestRatesAreThoseOfTheLastMinute(t *testing.T) {
	var h History
	h.Add(fleet(0, 4, 1, 0), start)
	var frames strings.Builder
	for _, step := range []struct {
		after time.Duration
		fleet tree.Fleet
	}{
		{30 * time.Second, fleet(0, 4, 2, 0)},
		{60 * time.Second, fleet(1, 5, 3, 1)},
		{80 * time.Second, fleet(1, 7, 6, 0)},
		{3 * time.Minute, fleet(1, 7, 6, 0)},
	} {
		frame := h.Add(step.fleet, start.Add(step.after))
		web := frame.Deployments[1]
		fmt.Fprintf(&frames, "%s: %.1f joins, %.1f leaves, %s left, complete %t\n", step.after, frame.Joins, frame.Leaves, web.left(), web.IsComplete())
	}
	want := `30s: 2.0 joins, 0.0 leaves, 2m left, complete false
1m0s: 3.0 joins, 1.0 leaves, 60s left, complete false
1m20s: 6.0 joins, 1.0 leaves, - left, complete true
3m0s: 0.0 joins, 0.0 leaves, - left, complete true
`
	if diff := cmp.Diff(want, frames.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A table is cut to the terminal's height; elsewhere a line tells what has changed.
func TestFramesArePrinted(t *testing.T) {
	var h History
	first := h.Add(fleet(0, 4, 1, 0), start)
	second := h.Add(fleet(0, 4, 3, 0), start.Add(20*time.Second))
	var table, short, coloured, lines strings.Builder
	for _, err := range []error{
		first.Table(&table, Options{Namespaces: true}), first.Table(&short, Options{Lines: 4}), second.Table(&coloured, Options{Coloured: true}),
		first.Lines(&lines, Frame{}), second.Lines(&lines, first), second.Lines(&lines, second),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := `12:00:00   5 machines (1 Pending, 3 Provisioning, 1 Running)   0.0 join and 0.0 go a minute

MACHINEDEPLOYMENT   PROGRESS               AVAILABLE   UPDATED   OUTDATED   LEFT   OTHER PHASES
other/db            ████████████████████   0/0         0/0       0          -
team/web            ███░░░░░░░░░░░░░░░░░   1/6         4/6       0          ?      3 Provisioning
`
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("table (-want +got)\n%s", diff)
	}
	if got := short.String(); !strings.HasSuffix(got, "\n… and 2 more\n") {
		t.Errorf("of a low terminal:\n%s", got)
	}
	if !strings.Contains(coloured.String(), yellow+"██████████░░░░░░░░░░"+plain) || !strings.Contains(coloured.String(), green+"████████████████████"+plain) {
		t.Errorf("in colour:\n%q", coloured.String())
	}
	want = `12:00:00 other/db: 0 of 0 available, 0 updated, 0 outdated; - left
12:00:00 team/web: 1 of 6 available, 4 updated, 0 outdated; 3 Provisioning; ? left
12:00:20 team/web: 3 of 6 available, 4 updated, 0 outdated; 1 Provisioning; 30s left
`
	if diff := cmp.Diff(want, lines.String()); diff != "" {
		t.Errorf("lines (-want +got)\n%s", diff)
	}
}
