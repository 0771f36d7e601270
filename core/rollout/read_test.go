package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestStateOfReadsADeployment(t *testing.T) {
	rolling := &clusterv1alpha1.MachineRollingUpdate{MaxSurge: new(intstr.FromString("50%")), MaxUnavailable: new(intstr.FromInt32(3))}
	for _, tc := range []struct {
		name string
		spec clusterv1alpha1.MachineDeploymentSpec
		want State
	}{
		{"nothing is said", clusterv1alpha1.MachineDeploymentSpec{}, State{HistoryLimit: 1, Limits: Limits{MaxSurge: 1}}},
		{
			"all is said",
			clusterv1alpha1.MachineDeploymentSpec{
				Replicas: new(int32(10)), Paused: true, RevisionHistoryLimit: new(int32(7)),
				Strategy: clusterv1alpha1.MachineDeploymentStrategy{Type: rollingUpdate, RollingUpdate: rolling},
			},
			State{Replicas: 10, Paused: true, HistoryLimit: 7, Strategy: rollingUpdate, Limits: Limits{MaxSurge: 5, MaxUnavailable: 3}},
		},
		{
			"a rolling update without numbers",
			clusterv1alpha1.MachineDeploymentSpec{Replicas: new(int32(2)), Strategy: clusterv1alpha1.MachineDeploymentStrategy{Type: rollingUpdate}},
			State{Replicas: 2, HistoryLimit: 1, Strategy: rollingUpdate, Limits: Limits{MaxSurge: 1}},
		},
		{
			"another strategy has no limits",
			clusterv1alpha1.MachineDeploymentSpec{Replicas: new(int32(4)), Strategy: clusterv1alpha1.MachineDeploymentStrategy{Type: onDelete, RollingUpdate: rolling}},
			State{Replicas: 4, HistoryLimit: 1, Strategy: onDelete},
		},
	} {
		if diff := cmp.Diff(tc.want, StateOf(&clusterv1alpha1.MachineDeployment{Spec: tc.spec})); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tc.name, diff)
		}
	}
}

// annotatedSet is a set with that many machines, of a revision, that was planned for a size.
func annotatedSet(name string, replicas int32, revision, desired, most string) clusterv1alpha1.MachineSet {
	set := clusterv1alpha1.MachineSet{Spec: clusterv1alpha1.MachineSetSpec{Replicas: &replicas}}
	set.Name, set.Annotations = name, map[string]string{
		clusterv1alpha1.RevisionAnnotation: revision, clusterv1alpha1.DesiredReplicasAnnotation: desired,
		clusterv1alpha1.MaxReplicasAnnotation: most, clusterv1alpha1.RolloutAnnotation: clusterv1alpha1.RolloutOutdated,
	}
	return set
}

func TestSetOfReadsASet(t *testing.T) {
	type T = clusterv1alpha1.MachineSet
	want := Set{Name: "a", Revision: 3, Desired: 2, Observed: true, PlannedFor: Size{Replicas: 4, Max: 5}, Part: Outdated}
	for _, tc := range []struct {
		name   string
		change func(*T)
		want   func(*Set)
	}{
		{"all is noted", func(*T) {}, func(*Set) {}},
		{"no revision is noted", func(s *T) { delete(s.Annotations, clusterv1alpha1.RevisionAnnotation) }, func(s *Set) { s.Revision = 0 }},
		{"a size that nobody can read", func(s *T) { s.Annotations[clusterv1alpha1.DesiredReplicasAnnotation] = "many" }, func(s *Set) { s.PlannedFor = Size{} }},
		{"a limit that nobody can read", func(s *T) { s.Annotations[clusterv1alpha1.MaxReplicasAnnotation] = "many" }, func(s *Set) { s.PlannedFor = Size{} }},
		{"its controller has not looked", func(s *T) { s.Generation = 1 }, func(s *Set) { s.Observed = false }},
		{"its controller has looked", func(s *T) { s.Generation, s.Status.ObservedGeneration = 1, 1 }, func(*Set) {}},
		{"it has no size", func(s *T) { s.Spec.Replicas = nil }, func(s *Set) { s.Desired, s.Observed = 0, false }},
		{"it is being deleted", func(s *T) { s.DeletionTimestamp = new(metav1.Now()) }, func(s *Set) { s.Observed = false }},
	} {
		set, expected := annotatedSet("a", 2, "3", "4", "5"), want
		tc.change(&set)
		tc.want(&expected)
		if diff := cmp.Diff(expected, SetOf(&set)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tc.name, diff)
		}
	}
}

func TestADeploymentWithoutASizeGetsOne(t *testing.T) {
	for _, tc := range []struct {
		name     string
		observed int64
		minimum  string
		sets     []clusterv1alpha1.MachineSet
		want     int32
	}{
		{name: "it is new", want: 1},
		{name: "it is new, and has a minimum", minimum: "3", want: 3},
		{name: "its size was taken away", observed: 1, sets: []clusterv1alpha1.MachineSet{
			annotatedSet("old", 1, "1", "9", "9"), annotatedSet("new", 1, "3", "6", "9"), annotatedSet("between", 1, "2", "8", "9"),
		}, want: 6},
		{name: "its newest set is empty", observed: 1, sets: []clusterv1alpha1.MachineSet{annotatedSet("old", 1, "1", "9", "9"), annotatedSet("new", 0, "2", "6", "9")}, want: 9},
		{name: "its sets do not say", observed: 1, sets: []clusterv1alpha1.MachineSet{annotatedSet("old", 1, "1", "many", "9")}, want: 0},
		{name: "its set has no revision", observed: 1, sets: []clusterv1alpha1.MachineSet{annotatedSet("old", 1, "", "6", "9")}, want: 6},
		{name: "of two of one revision the first counts", observed: 1, sets: []clusterv1alpha1.MachineSet{
			annotatedSet("a", 1, "1", "6", "9"), annotatedSet("b", 1, "1", "8", "9"),
		}, want: 6},
		{name: "it has no set", observed: 1, minimum: "3", want: 0},
	} {
		md := &clusterv1alpha1.MachineDeployment{Status: clusterv1alpha1.MachineDeploymentStatus{ObservedGeneration: tc.observed}}
		if tc.minimum != "" {
			md.Annotations = map[string]string{clusterv1alpha1.NodeGroupMinSizeAnnotation: tc.minimum}
		}
		if got := InitialSize(md, tc.sets); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestTheSetOfATemplateIsFound(t *testing.T) {
	made := func(name, revision, kubelet string, change ...func(*clusterv1alpha1.MachineSet)) clusterv1alpha1.MachineSet {
		set := annotatedSet(name, 1, revision, "1", "1")
		set.Spec.Template.Spec.Versions.Kubelet = kubelet
		set.CreationTimestamp = metav1.NewTime(epoch)
		for _, c := range change {
			c(&set)
		}
		return set
	}
	madeAt := func(at time.Time) func(*clusterv1alpha1.MachineSet) {
		return func(s *clusterv1alpha1.MachineSet) { s.CreationTimestamp = metav1.NewTime(at) }
	}
	madeFor := func(at time.Time) func(*clusterv1alpha1.MachineSet) {
		return func(s *clusterv1alpha1.MachineSet) {
			s.Annotations[clusterv1alpha1.RolloutAfterAnnotation] = at.Format(time.RFC3339)
		}
	}
	second := epoch.Add(time.Second)
	for _, tc := range []struct {
		name  string
		after time.Time
		sets  []clusterv1alpha1.MachineSet
		want  string
		left  time.Duration
	}{
		{name: "there is none", sets: []clusterv1alpha1.MachineSet{made("old", "1", "1.35.0")}},
		{name: "there is one", sets: []clusterv1alpha1.MachineSet{made("old", "2", "1.35.0"), made("new", "1", "1.36.0")}, want: "new"},
		{name: "of several the newest counts", sets: []clusterv1alpha1.MachineSet{made("a", "1", "1.36.0"), made("b", "3", "1.36.0"), made("c", "2", "1.36.0")}, want: "b"},
		{name: "of two of one revision the first counts", sets: []clusterv1alpha1.MachineSet{made("a", "1", "1.36.0"), made("b", "1", "1.36.0")}, want: "a"},
		{name: "one of before the restart is old", after: epoch, sets: []clusterv1alpha1.MachineSet{made("a", "1", "1.36.0")}},
		{name: "one of after the restart is not", after: epoch, sets: []clusterv1alpha1.MachineSet{made("a", "1", "1.36.0", madeAt(second))}, want: "a"},
		{name: "one that was made for the restart is not", after: second, sets: []clusterv1alpha1.MachineSet{made("a", "1", "1.36.0", madeFor(second))}, want: "a"},
		{name: "one that was made for an earlier restart is old", after: second, sets: []clusterv1alpha1.MachineSet{made("a", "1", "1.36.0", madeFor(epoch))}},
		{name: "a restart that is yet to come", after: epoch.Add(time.Hour), sets: []clusterv1alpha1.MachineSet{made("a", "1", "1.36.0")}, want: "a", left: 59 * time.Minute},
	} {
		md := &clusterv1alpha1.MachineDeployment{}
		md.Spec.Template.Spec.Versions.Kubelet = "1.36.0"
		if !tc.after.IsZero() {
			md.Spec.RolloutAfter = new(metav1.NewTime(tc.after))
		}
		template, left, err := TemplateOf(md, epoch.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		found, err := template.Find(tc.sets)
		if err != nil {
			t.Fatal(err)
		}
		name := ""
		if found != nil {
			name = found.Name
		}
		if name != tc.want || left != tc.left {
			t.Errorf("%s: %q in %s, want %q in %s", tc.name, name, left, tc.want, tc.left)
		}
	}
}

func TestTemplatesThatCannotBeReadAreErrors(t *testing.T) {
	broken := clusterv1alpha1.MachineTemplateSpec{}
	broken.Spec.ProviderSpec.Value.CloudProviderSpec.Raw = []byte("{")
	if _, _, err := TemplateOf(&clusterv1alpha1.MachineDeployment{Spec: clusterv1alpha1.MachineDeploymentSpec{Template: broken}}, epoch); err == nil {
		t.Error("that of a deployment is read")
	}
	if _, err := (Template{}).Find([]clusterv1alpha1.MachineSet{{Spec: clusterv1alpha1.MachineSetSpec{Template: broken}}}); err == nil {
		t.Error("that of a set is read")
	}
}
