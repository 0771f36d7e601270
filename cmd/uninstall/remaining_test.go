package uninstall

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// machine returns one in a phase, with these conditions as TYPE=REASON.
func machine(name string, phase clusterv1alpha1.MachinePhase, conditions ...string) client.Object {
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	m.Status.Phase = phase
	for _, c := range conditions {
		typ, reason, _ := strings.Cut(c, "=")
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: typ, Reason: reason, Message: "its words."})
	}
	return m
}

func TestWhatIsLeftIsCounted(t *testing.T) {
	set := &clusterv1alpha1.MachineSet{}
	for _, tc := range []struct {
		name string
		make func(*remaining)
		want string
	}{
		{"nothing", func(*remaining) {}, "0 Machines left."},
		{"machines by phase, and what makes them", func(r *remaining) {
			r.add("Machine", []client.Object{
				machine("a", clusterv1alpha1.MachinePhaseDeleting), machine("b", clusterv1alpha1.MachinePhaseRunning), machine("c", clusterv1alpha1.MachinePhaseDeleting),
			})
			r.add("MachineSet", []client.Object{set})
		}, "3 Machines left (2 Deleting, 1 Running, 1 MachineSet)"},
		{"what machines were made from", func(r *remaining) {
			r.add("MachineClass", []client.Object{set, set})
		}, "0 Machines left (2 MachineClasses)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var r remaining
			tc.make(&r)
			if got := r.summary(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if r.none() != (tc.name == "nothing") {
				t.Errorf("none is %t", r.none())
			}
		})
	}
}

func TestWhatKeepsMachinesIsNamed(t *testing.T) {
	var r remaining
	r.add("Machine", []client.Object{
		machine("a", clusterv1alpha1.MachinePhaseDeleting, "Ready=BlockedByPodDisruptionBudget"),
		machine("b", clusterv1alpha1.MachinePhaseDeleting, "Paused=PausedByAnnotation", "Ready=Deleting"),
		machine("c", clusterv1alpha1.MachinePhasePending),
	})
	want := []string{
		"team/a: BlockedByPodDisruptionBudget: its words.",
		"team/b: PausedByAnnotation: its words.",
		"team/c: no condition tells why",
	}
	if diff := cmp.Diff(want, r.reasons()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range maxReasons {
		r.add("Machine", []client.Object{machine("more", clusterv1alpha1.MachinePhaseDeleting)})
	}
	if lines := r.reasons(); len(lines) != maxReasons+1 || lines[maxReasons] != "and 3 more" {
		t.Errorf("of 13 Machines %d lines are told, the last is %q", len(lines), lines[len(lines)-1])
	}
}
