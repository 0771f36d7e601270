package forecast

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/rollout"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fleet is a deployment with what it owns.
type fleet struct {
	md       *clusterv1alpha1.MachineDeployment
	sets     []clusterv1alpha1.MachineSet
	machines map[types.UID][]clusterv1alpha1.Machine
}

// newFleet returns a deployment of the template new whose set old has all its machines, available.
func newFleet(replicas, surge, unavailable int32) *fleet {
	f := &fleet{md: &clusterv1alpha1.MachineDeployment{}, machines: map[types.UID][]clusterv1alpha1.Machine{}}
	f.md.Spec.Replicas = &replicas
	f.md.Spec.Template.Spec.Versions.Kubelet = "new"
	f.md.Spec.Strategy.RollingUpdate = &clusterv1alpha1.MachineRollingUpdate{
		MaxSurge: new(intstr.FromInt32(surge)), MaxUnavailable: new(intstr.FromInt32(unavailable)), DeletePolicy: clusterv1alpha1.DeletePolicyOldest,
	}
	f.add("old", replicas, surge)
	return f
}

func (f *fleet) add(template string, replicas, surge int32) {
	set := clusterv1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: template, UID: types.UID(template)}}
	set.Annotations = map[string]string{
		clusterv1alpha1.RevisionAnnotation:        fmt.Sprint(len(f.sets) + 1),
		clusterv1alpha1.DesiredReplicasAnnotation: fmt.Sprint(*f.md.Spec.Replicas),
		clusterv1alpha1.MaxReplicasAnnotation:     fmt.Sprint(*f.md.Spec.Replicas + surge),
	}
	set.Spec.Replicas = &replicas
	set.Spec.Template.Spec.Versions.Kubelet = template
	f.sets = append(f.sets, set)
	for i := range replicas {
		m := clusterv1alpha1.Machine{Spec: set.Spec.Template.Spec}
		m.Name = fmt.Sprintf("%s-%d", template, i)
		m.UID, m.CreationTimestamp = types.UID(m.Name), metav1.NewTime(now.Add(time.Duration(i-100)*time.Minute))
		m.Status.NodeRef = &corev1.ObjectReference{Name: m.Name}
		report(&m, true)
		f.machines[set.UID] = append(f.machines[set.UID], m)
	}
}

func report(m *clusterv1alpha1.Machine, ready bool) {
	status := map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[ready]
	apimeta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionReady, Status: status, Reason: "Test", LastTransitionTime: m.CreationTimestamp,
	})
}

func instanceIs(m *clusterv1alpha1.Machine, reason string) {
	apimeta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionInstanceReady, Status: metav1.ConditionFalse, Reason: reason,
	})
}

func (f *fleet) forecast(t interface{ Fatal(...any) }) Forecast {
	forecast, err := Of(f.md, f.sets, f.machines, now)
	if err != nil {
		t.Fatal(err)
	}
	return forecast
}

// text is a line for each wave, and one for the end.
func text(f Forecast) string {
	var b strings.Builder
	for _, wave := range f.Waves {
		for _, c := range wave.Changes {
			fmt.Fprintf(&b, "%s %d→%d", c.Set, c.From, c.To)
			if c.Create > 0 {
				fmt.Fprintf(&b, " +%d", c.Create)
			}
			if len(c.Delete) > 0 {
				fmt.Fprintf(&b, " -%s", strings.Join(c.Delete, ","))
			}
			b.WriteString(map[bool]string{true: " deleted; ", false: "; "}[c.Deleted])
		}
		fmt.Fprintf(&b, "%d there, %d up\n", wave.Machines, wave.Available)
	}
	fmt.Fprintf(&b, "%s: %d up, then %d, never fewer than %d\n", f.Wait.For, f.Before, f.After, f.Least)
	return b.String()
}

func TestAForecastPlaysADeploymentToItsEnd(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fleet  func() *fleet
		change func(*fleet)
		want   string
	}{
		{
			"nothing is to be done", func() *fleet { return newFleet(2, 1, 0) },
			func(f *fleet) { f.md.Spec.Template.Spec.Versions.Kubelet = "old" },
			"Nothing: 2 up, then 2, never fewer than 2\n",
		},
		{
			"one after the other", func() *fleet { return newFleet(2, 1, 0) }, func(*fleet) {}, `
(new) 0→1 +1; 3 there, 2 up
old 2→1 -old-0; 3 there, 2 up
(new) 1→2 +1; 3 there, 2 up
old 1→0 -old-1; 3 there, 2 up
Nothing: 2 up, then 2, never fewer than 2
`,
		},
		{
			"a full quota", func() *fleet { return newFleet(3, 0, 2) }, func(*fleet) {}, `
(new) 0→0; old 3→1 -old-0,old-1; 3 there, 1 up
(new) 0→2 +2; 3 there, 1 up
old 1→0 -old-2; 3 there, 2 up
(new) 2→3 +1; 3 there, 2 up
Nothing: 3 up, then 3, never fewer than 1
`,
		},
		{
			"fewer, and another template", func() *fleet { return newFleet(3, 1, 0) }, func(f *fleet) { f.md.Spec.Replicas = new(int32(1)) }, `
(new) 0→0; old 3→1 -old-0,old-1; 3 there, 1 up
(new) 0→1 +1; 2 there, 1 up
old 1→0 -old-2; 2 there, 1 up
Nothing: 3 up, then 1, never fewer than 1
`,
		},
		{
			"back to a template that has a set", func() *fleet {
				f := newFleet(1, 1, 0)
				f.add("new", 0, 1)
				f.add("newest", 1, 1)
				f.sets[0].Spec.Replicas, f.machines["old"] = new(int32(0)), nil
				return f
			}, func(f *fleet) { f.md.Spec.RevisionHistoryLimit = new(int32(1)) }, `
new 0→1 +1; 2 there, 1 up
newest 1→0 -newest-0; 2 there, 1 up
old 0→0 deleted; 1 there, 1 up
Nothing: 1 up, then 1, never fewer than 1
`,
		},
		{
			"recreate", func() *fleet { return newFleet(2, 1, 0) },
			func(f *fleet) { f.md.Spec.Strategy.Type = clusterv1alpha1.RecreateStrategy }, `
(new) 0→0; old 2→0 -old-0,old-1; 2 there, 0 up
(new) 0→2 +2; 2 there, 0 up
Nothing: 2 up, then 2, never fewer than 0
`,
		},
		{
			"on delete", func() *fleet { return newFleet(2, 1, 0) }, func(f *fleet) {
				f.md.Spec.Strategy.Type = clusterv1alpha1.OnDeleteStrategy
				f.machines["old"][1].DeletionTimestamp = new(metav1.NewTime(now))
			}, `
(new) 0→0; old 2→1; 2 there, 1 up
(new) 0→1 +1; 2 there, 1 up
Request: 1 up, then 2, never fewer than 1
`,
		},
		{
			"a machine that somebody deletes is replaced first", func() *fleet { return newFleet(2, 1, 0) }, func(f *fleet) {
				f.md.Spec.Template.Spec.Versions.Kubelet = "old"
				f.machines["old"][1].DeletionTimestamp = new(metav1.NewTime(now))
			}, `
old 2→2 +1; 3 there, 1 up
Nothing: 1 up, then 2, never fewer than 1
`,
		},
		{
			"machines that do not come up", func() *fleet { return newFleet(4, 1, 1) }, func(f *fleet) {
				f.add("new", 1, 1)
				report(&f.machines["new"][0], false)
			}, `
old 4→3 -old-0; 5 there, 3 up
new 1→2 +1; 5 there, 3 up
old 3→2 -old-1; 5 there, 3 up
new 2→3 +1; 5 there, 3 up
old 2→1 -old-2; 5 there, 3 up
new 3→4 +1; 5 there, 3 up
old 1→0 -old-3; 5 there, 3 up
Availability: 4 up, then 3, never fewer than 3
`,
		},
		{
			"machines that are coming up", func() *fleet { return newFleet(2, 1, 0) }, func(f *fleet) {
				f.md.Spec.Template.Spec.Versions.Kubelet, f.md.Spec.MinReadySeconds = "old", 3600*24
				f.machines["old"][0].Status = clusterv1alpha1.MachineStatus{}
			}, `
2 there, 0 up
Nothing: 0 up, then 2, never fewer than 0
`,
		},
		{
			"it is paused", func() *fleet { return newFleet(2, 1, 0) }, func(f *fleet) { f.md.Spec.Paused = true },
			"Resumption: 2 up, then 2, never fewer than 2\n",
		},
		{
			"it is to be left alone", func() *fleet { return newFleet(2, 1, 0) },
			func(f *fleet) { f.md.Annotations = map[string]string{clusterv1alpha1.PausedAnnotation: ""} },
			"Resumption: 2 up, then 2, never fewer than 2\n",
		},
		{
			"a set is to be left alone", func() *fleet { return newFleet(2, 1, 0) },
			func(f *fleet) { f.sets[0].Annotations[clusterv1alpha1.PausedAnnotation] = "" }, `
(new) 0→1 +1; 3 there, 2 up
old 2→1; 3 there, 3 up
Observation: 2 up, then 3, never fewer than 2
`,
		},
		{
			"a set goes with its machines", func() *fleet { return newFleet(2, 1, 0) },
			func(f *fleet) { f.sets[0].DeletionTimestamp = new(metav1.NewTime(now)) }, `
2 there, 2 up
(new) 0→2 +2; 2 there, 0 up
Nothing: 2 up, then 2, never fewer than 0
`,
		},
		{
			"a set that nobody has given a size", func() *fleet { return newFleet(2, 1, 0) }, func(f *fleet) {
				f.md.Spec.Replicas, f.md.Spec.Template.Spec.Versions.Kubelet = nil, "old"
				f.machines["old"] = f.machines["old"][:1]
			}, `
old 2→2 +1; 2 there, 1 up
Nothing: 1 up, then 2, never fewer than 1
`,
		},
		{
			"a set that does not know what it may have replaces machines when they are gone", func() *fleet { return newFleet(2, 1, 0) }, func(f *fleet) {
				f.md.Spec.Template.Spec.Versions.Kubelet = "old"
				delete(f.sets[0].Annotations, clusterv1alpha1.MaxReplicasAnnotation)
				delete(f.sets[0].Annotations, clusterv1alpha1.DesiredReplicasAnnotation)
				f.machines["old"][1].DeletionTimestamp = new(metav1.NewTime(now))
			}, `
old 2→2 +1; 3 there, 1 up
Nothing: 1 up, then 2, never fewer than 1
`,
		},
		{
			"a set that has not followed its size", func() *fleet { return newFleet(3, 1, 0) }, func(f *fleet) {
				f.md.Spec.Replicas, f.sets[0].Spec.Replicas = new(int32(2)), new(int32(2))
				f.sets[0].Annotations[clusterv1alpha1.DesiredReplicasAnnotation] = "2"
			}, `
old 2→2 -old-0; (new) 0→0; 3 there, 2 up
(new) 0→1 +1; 3 there, 2 up
old 2→1 -old-1; 3 there, 2 up
(new) 1→2 +1; 3 there, 2 up
old 1→0 -old-2; 3 there, 2 up
Nothing: 3 up, then 2, never fewer than 2
`,
		},
		{
			"a set that shrinks for a rollout gives up what is not available", func() *fleet { return newFleet(3, 1, 0) }, func(f *fleet) {
				f.md.Spec.Replicas, f.sets[0].Spec.Replicas = new(int32(2)), new(int32(2))
				f.md.Spec.Template.Spec.Versions.Kubelet = "old"
				f.sets[0].Annotations[clusterv1alpha1.DesiredReplicasAnnotation] = "2"
				f.sets[0].Annotations[clusterv1alpha1.ScalingReasonAnnotation] = clusterv1alpha1.ScalingReasonRolling
				f.machines["old"][0].Annotations = map[string]string{clusterv1alpha1.DeleteMachineAnnotation: ""}
				report(&f.machines["old"][2], false)
			}, `
old 2→2 -old-2; 3 there, 2 up
Nothing: 2 up, then 2, never fewer than 2
`,
		},
		{
			"a set that shrinks for another size gives up what is marked", func() *fleet { return newFleet(3, 1, 0) }, func(f *fleet) {
				f.md.Spec.Replicas, f.md.Spec.Template.Spec.Versions.Kubelet = new(int32(2)), "old"
				f.sets[0].Annotations[clusterv1alpha1.ScalingReasonAnnotation] = clusterv1alpha1.ScalingReasonRolling
				f.machines["old"][0].Annotations = map[string]string{clusterv1alpha1.DeleteMachineAnnotation: ""}
				report(&f.machines["old"][2], false)
			}, `
old 3→2 -old-0; 3 there, 1 up
Availability: 2 up, then 1, never fewer than 1
`,
		},
		{
			"the set's own order, where the deployment says none", func() *fleet { return newFleet(3, 1, 0) }, func(f *fleet) {
				f.md.Spec.Replicas, f.md.Spec.Template.Spec.Versions.Kubelet = new(int32(1)), "old"
				f.md.Spec.Strategy.RollingUpdate.DeletePolicy, f.sets[0].Spec.DeletePolicy = "", clusterv1alpha1.DeletePolicyNewest
			}, `
old 3→1 -old-2,old-1; 3 there, 1 up
Nothing: 3 up, then 1, never fewer than 1
`,
		},
		{
			"no rolling update is spoken of", func() *fleet { return newFleet(2, 1, 0) }, func(f *fleet) {
				f.md.Spec.Replicas, f.md.Spec.Template.Spec.Versions.Kubelet = new(int32(1)), "old"
				f.md.Spec.Strategy.RollingUpdate, f.sets[0].Spec.DeletePolicy = nil, clusterv1alpha1.DeletePolicyNewest
			}, `
old 2→1 -old-1; 2 there, 1 up
Nothing: 2 up, then 1, never fewer than 1
`,
		},
		{
			"machines that will not come up: failed, stopped, and with a VM that is another's", func() *fleet { return newFleet(3, 1, 0) }, func(f *fleet) {
				f.md.Spec.Template.Spec.Versions.Kubelet = "old"
				for i, change := range []func(*clusterv1alpha1.Machine){
					func(m *clusterv1alpha1.Machine) { m.Status.Phase = clusterv1alpha1.MachinePhaseFailed },
					func(m *clusterv1alpha1.Machine) { instanceIs(m, clusterv1alpha1.ReasonInstanceStopped) },
					func(m *clusterv1alpha1.Machine) { instanceIs(m, clusterv1alpha1.ReasonNotAdopted) },
				} {
					f.machines["old"][i].Status = clusterv1alpha1.MachineStatus{}
					change(&f.machines["old"][i])
				}
			}, `
Availability: 0 up, then 0, never fewer than 0
`,
		},
		{
			"more surge for the same size is there at once", func() *fleet { return newFleet(4, 0, 1) }, func(f *fleet) {
				f.md.Spec.Template.Spec.Versions.Kubelet = "old"
				f.md.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(2))
				for i := range 2 {
					f.machines["old"][i].DeletionTimestamp = new(metav1.NewTime(now))
				}
			}, `
old 4→4 +2; 6 there, 2 up
Nothing: 2 up, then 4, never fewer than 2
`,
		},
		{
			"left alone in the middle of a rollout, a set has no room that another holds", func() *fleet {
				f := newFleet(2, 0, 1)
				f.sets[0].Spec.Replicas, f.machines["old"] = new(int32(1)), f.machines["old"][:1]
				f.add("new", 1, 0)
				return f
			}, func(f *fleet) {
				f.md.Annotations = map[string]string{clusterv1alpha1.PausedAnnotation: ""}
				for i := range f.sets {
					f.sets[i].Annotations[clusterv1alpha1.MaxReplicasAnnotation] = "5" // of before
				}
				f.machines["new"][0].DeletionTimestamp = new(metav1.NewTime(now))
			}, `
2 there, 1 up
new 1→1 +1; 2 there, 1 up
Resumption: 1 up, then 2, never fewer than 1
`,
		},
		{
			"far too many machines of another set keep one from creating", func() *fleet {
				f := newFleet(9, 1, 0)
				f.add("new", 0, 1)
				return f
			}, func(f *fleet) {
				f.md.Spec.Replicas, f.sets[0].Spec.Replicas, f.sets[1].Spec.Replicas = new(int32(3)), new(int32(0)), new(int32(3))
				for i := range f.sets {
					f.sets[i].Annotations[clusterv1alpha1.DesiredReplicasAnnotation], f.sets[i].Annotations[clusterv1alpha1.MaxReplicasAnnotation] = "3", "4"
				}
				for i := range f.machines["old"] {
					f.machines["old"][i].DeletionTimestamp = new(metav1.NewTime(now))
				}
			}, `
9 there, 0 up
new 3→3 +3; 3 there, 0 up
Nothing: 0 up, then 3, never fewer than 0
`,
		},
		{
			"more, in the middle of a rollout: what an old set gets goes first if the newest do", func() *fleet {
				f := newFleet(4, 2, 0)
				f.add("new", 2, 2)
				return f
			}, func(f *fleet) {
				f.md.Spec.Replicas, f.md.Spec.Strategy.RollingUpdate.DeletePolicy = new(int32(8)), clusterv1alpha1.DeletePolicyNewest
			}, `
old 4→6 +3 -old/3; new 2→3 +1; 10 there, 6 up
new 3→4 +1; old 6→5 -old/2; 10 there, 8 up
new 4→5 +1; old 5→4 -old/1; 10 there, 8 up
new 5→6 +1; old 4→3 -old-3; 10 there, 8 up
new 6→7 +1; old 3→2 -old-2; 10 there, 8 up
new 7→8 +1; old 2→1 -old-1; 10 there, 8 up
old 1→0 -old-0; 9 there, 8 up
Nothing: 6 up, then 8, never fewer than 6
`,
		},
	} {
		f := tc.fleet()
		tc.change(f)
		if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), text(f.forecast(t))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tc.name, diff)
		}
	}
}

func TestTemplatesThatCannotBeReadHaveNoForecast(t *testing.T) {
	for name, broken := range map[string]func(*fleet) *clusterv1alpha1.MachineTemplateSpec{
		"that of the deployment": func(f *fleet) *clusterv1alpha1.MachineTemplateSpec { return &f.md.Spec.Template },
		"that of a set":          func(f *fleet) *clusterv1alpha1.MachineTemplateSpec { return &f.sets[0].Spec.Template },
	} {
		f := newFleet(1, 1, 0)
		broken(f).Spec.ProviderSpec.Value.CloudProviderSpec.Raw = []byte("{")
		if _, err := Of(f.md, f.sets, f.machines, now); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}

// Whatever a rolling update starts from, a forecast keeps its limits and leads to the end.
func TestForecastsKeepTheLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		surge, unavailable := rapid.Int32Range(0, 3).Draw(t, "surge"), rapid.Int32Range(0, 3).Draw(t, "unavailable")
		f := newFleet(rapid.Int32Range(0, 8).Draw(t, "replicas before"), surge, unavailable)
		f.md.Spec.Replicas = new(rapid.Int32Range(0, 8).Draw(t, "replicas"))
		if rapid.Bool().Draw(t, "rollout is under way") {
			f.add("new", rapid.Int32Range(0, 8).Draw(t, "of the new template"), surge)
		}
		for uid, machines := range f.machines {
			for i := range machines {
				switch rapid.IntRange(0, 5).Draw(t, "machine of "+string(uid)) {
				case 0:
					machines[i].DeletionTimestamp = new(metav1.NewTime(now))
				case 1:
					machines[i].Status = clusterv1alpha1.MachineStatus{}
				}
			}
		}
		got, most := f.forecast(t), len(slices.Concat(f.machines["old"], f.machines["new"]))
		limits := rollout.StateOf(f.md)
		most = max(most, int(limits.Replicas+limits.Limits.MaxSurge))
		for i, wave := range got.Waves {
			if wave.Machines > most {
				t.Fatalf("wave %d: %d machines, more than %d:\n%s", i, wave.Machines, most, text(got))
			}
		}
		if floor := min(got.Before, int(limits.Replicas-limits.Limits.MaxUnavailable)); got.Least < floor {
			t.Fatalf("fewer than %d are available:\n%s", floor, text(got))
		}
		if got.Wait.For != rollout.Nothing || got.After != int(*f.md.Spec.Replicas) {
			t.Fatalf("it does not end:\n%s", text(got))
		}
	})
}
