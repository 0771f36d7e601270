package machinedeployment_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/controllers/machinedeployment"
	"github.com/millwright-dev/millwright/core/controllers/machineset"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
	"github.com/millwright-dev/millwright/core/surge"
)

func TestMain(m *testing.M) { os.Exit(controllertest.Run(m)) }

func manage(t *testing.T, c *controllertest.Cluster) (stop func()) {
	t.Helper()
	return manageWith(t, c, interceptor.Funcs{})
}

// manageWith has funcs between the controllers and the API server.
func manageWith(t *testing.T, c *controllertest.Cluster, funcs interceptor.Funcs) (stop func()) {
	t.Helper()
	accounts := surge.NewAccounts(clock.RealClock{})
	return c.Manage(t, funcs,
		func(mgr ctrl.Manager) error {
			return machinedeployment.Add(mgr, machinedeployment.Options{Surge: accounts})
		},
		func(mgr ctrl.Manager) error { return machineset.Add(mgr, machineset.Options{Surge: accounts}) })
}

// newDeployment makes the deployment nodes, with maxSurge 1 and maxUnavailable 0, but for what
// change changes.
func newDeployment(t *testing.T, c *controllertest.Cluster, replicas int32, change ...func(*clusterv1alpha1.MachineDeployment)) *clusterv1alpha1.MachineDeployment {
	t.Helper()
	md := &clusterv1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "nodes"},
		Spec: clusterv1alpha1.MachineDeploymentSpec{
			Replicas: &replicas,
			Selector: clusterv1alpha1.LabelSelector{MatchLabels: map[string]string{"group": "nodes"}},
			Template: clusterv1alpha1.MachineTemplateSpec{
				ObjectMeta: clusterv1alpha1.ObjectMeta{Labels: map[string]string{"group": "nodes"}},
				Spec: clusterv1alpha1.MachineSpec{
					Versions: clusterv1alpha1.MachineVersions{Kubelet: "1.36.0"},
					ProviderSpec: clusterv1alpha1.ProviderSpec{Value: clusterv1alpha1.ProviderSpecValue{
						CloudProvider: "test", OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu,
						CloudProviderSpec: runtime.RawExtension{Raw: []byte(`{"flavor":"small","disk":10}`)},
					}},
				},
			},
		},
	}
	for _, change := range change {
		change(md)
	}
	if err := c.Create(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	return md
}

func bounds(surge, unavailable string) func(*clusterv1alpha1.MachineDeployment) {
	s, u := intstr.Parse(surge), intstr.Parse(unavailable)
	return func(md *clusterv1alpha1.MachineDeployment) {
		md.Spec.Strategy.RollingUpdate = &clusterv1alpha1.MachineRollingUpdate{MaxSurge: &s, MaxUnavailable: &u}
	}
}

func kubelet(version string) func(*clusterv1alpha1.MachineDeployment) {
	return func(md *clusterv1alpha1.MachineDeployment) { md.Spec.Template.Spec.Versions.Kubelet = version }
}

func size(replicas int32) func(*clusterv1alpha1.MachineDeployment) {
	return func(md *clusterv1alpha1.MachineDeployment) { md.Spec.Replicas = &replicas }
}

// isComplete waits until the deployment has that many Machines, all of its template and available.
func isComplete(t *testing.T, c *controllertest.Cluster, md *clusterv1alpha1.MachineDeployment, replicas int32) {
	t.Helper()
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(md), md); err != nil {
			return err.Error()
		}
		s := md.Status
		progressing := apimeta.FindStatusCondition(s.Conditions, clusterv1alpha1.ConditionProgressing)
		if s.ObservedGeneration != md.Generation || s.Replicas != replicas || s.UpdatedReplicas != replicas ||
			s.AvailableReplicas != replicas || progressing == nil || progressing.Reason != clusterv1alpha1.ReasonNewMachineSetAvailable {
			return fmt.Sprintf("status is %+v, want %d Machines; sets: %v", s, replicas, tellSets(t, c))
		}
		return ""
	})
}

func sets(t *testing.T, c *controllertest.Cluster) []clusterv1alpha1.MachineSet {
	t.Helper()
	list := &clusterv1alpha1.MachineSetList{}
	if err := c.List(t.Context(), list, client.InNamespace(c.Namespace)); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b clusterv1alpha1.MachineSet) int { return revision(&a) - revision(&b) })
	return list.Items
}

func revision(o metav1.Object) int {
	n, err := strconv.Atoi(o.GetAnnotations()[clusterv1alpha1.RevisionAnnotation])
	if err != nil {
		return 0
	}
	return n
}

func tellSets(t *testing.T, c *controllertest.Cluster) []string {
	t.Helper()
	var all []string
	for _, s := range sets(t, c) {
		all = append(all, fmt.Sprintf("%s %d: %+v", s.Name, *s.Spec.Replicas, s.Status))
	}
	return all
}

func within(t *testing.T, audit *controllertest.Audit, most, least int) {
	t.Helper()
	if audit.Most() > most {
		t.Errorf("there were %d Machines at once, more than %d", audit.Most(), most)
	}
	if audit.Least() < least {
		t.Errorf("%d Machines were available, fewer than %d", audit.Least(), least)
	}
}

func TestARollingUpdateKeepsWithinItsLimits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name               string
		replicas           int32
		surge, unavailable string
		most, least        int
	}{
		{"one at a time", 3, "1", "0", 4, 3},
		{"without surge", 3, "0", "1", 3, 2},
		{"a quarter", 10, "25%", "25%", 13, 8},
		{"all at once", 4, "100%", "0", 8, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := controllertest.New(t)
			c.Act(t)
			manage(t, c)
			md := newDeployment(t, c, tc.replicas, bounds(tc.surge, tc.unavailable))
			isComplete(t, c, md, tc.replicas)
			audit := c.Audit(t)
			c.Eventually(t, func() string {
				if audit.Made() != int(tc.replicas) {
					return "the audit has not seen all Machines"
				}
				return ""
			})
			audit.WatchFloor()
			controllertest.Patch(t, c, md, kubelet("1.36.1"))
			isComplete(t, c, md, tc.replicas)
			within(t, audit, tc.most, tc.least)
			if want := 2 * int(tc.replicas); audit.Made() != want {
				t.Errorf("%d Machines were made, %d were needed", audit.Made(), want)
			}
			for _, m := range c.Machines(t) {
				if m.Spec.Versions.Kubelet != "1.36.1" {
					t.Errorf("%s runs %s", m.Name, m.Spec.Versions.Kubelet)
				}
			}
		})
	}
}

func TestSetsCarryWhatOthersRead(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 1, func(md *clusterv1alpha1.MachineDeployment) {
		bounds("1", "0")(md)
		md.Spec.MinReadySeconds = 1
		md.Spec.Strategy.RollingUpdate.DeletePolicy = clusterv1alpha1.DeletePolicyOldest
		md.Spec.Strategy.Remediation = &clusterv1alpha1.MachineRemediation{MaxInFlight: new(intstr.FromInt32(3))}
	})
	isComplete(t, c, md, 1)
	set := sets(t, c)[0]
	if owner := metav1.GetControllerOf(&set); owner == nil || owner.UID != md.UID || owner.Kind != "MachineDeployment" {
		t.Errorf("owner is %+v", owner)
	}
	if set.Labels[clusterv1alpha1.DeploymentNameLabel] != "nodes" || set.Annotations[clusterv1alpha1.AutoscalerRevisionAnnotation] != "1" {
		t.Errorf("the autoscaler's guard would not see %v, %v", set.Labels, set.Annotations)
	}
	hash := set.Labels[clusterv1alpha1.MachineTemplateHashLabel]
	if hash == "" || set.Name != "nodes-"+hash || set.Spec.Selector.MatchLabels[clusterv1alpha1.MachineTemplateHashLabel] != hash ||
		c.Machines(t)[0].Labels[clusterv1alpha1.MachineTemplateHashLabel] != hash {
		t.Errorf("the hash does not tell sets apart: %+v", set)
	}
	if revision(md) != 1 || md.Status.Selector != "group=nodes" {
		t.Errorf("revision %d, selector %s", revision(md), md.Status.Selector)
	}
	if set.Spec.Remediation.MaxInFlight.IntValue() != 3 || set.Spec.MinReadySeconds != 1 || set.Spec.DeletePolicy != clusterv1alpha1.DeletePolicyOldest {
		t.Errorf("set: %+v", set.Spec)
	}
	controllertest.Patch(t, c, md, func(md *clusterv1alpha1.MachineDeployment) {
		md.Spec.MinReadySeconds = 0
		md.Spec.Strategy.RollingUpdate.DeletePolicy = clusterv1alpha1.DeletePolicyNewest
	})
	c.Eventually(t, func() string {
		s := sets(t, c)
		if len(s) != 1 || s[0].Spec.MinReadySeconds != 0 || s[0].Spec.DeletePolicy != clusterv1alpha1.DeletePolicyNewest {
			return fmt.Sprintf("sets: %+v", s)
		}
		return ""
	})
}

func TestTheSameTemplateInOtherWordsReplacesNothing(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 2)
	isComplete(t, c, md, 2)
	audit := c.Audit(t)
	now := "2019-02-18T18:10:57Z"
	controllertest.Patch(t, c, md, func(md *clusterv1alpha1.MachineDeployment) {
		md.Spec.Template.CreationTimestamp = &now
		md.Spec.Template.Spec.Metadata.CreationTimestamp = &now
		md.Spec.Template.Spec.ProviderSpec.Value.CloudProviderSpec.Raw = []byte(`{"disk": 10, "flavor": "small"}`)
	})
	isComplete(t, c, md, 2)
	if n := len(sets(t, c)); n != 1 || audit.Made() > 2 {
		t.Errorf("%d sets, %d Machines were made", n, audit.Made())
	}
}

func TestADeploymentIsScaledInTheMiddleOfARollout(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 10, bounds("3", "2"))
	isComplete(t, c, md, 10)
	actor.Up(func(m *clusterv1alpha1.Machine) bool { return m.Spec.Versions.Kubelet == "1.36.0" })
	audit := c.Audit(t)
	sizes := func(want ...int32) {
		t.Helper()
		c.Eventually(t, func() string {
			var got []int32
			for _, s := range sets(t, c) {
				got = append(got, *s.Spec.Replicas)
			}
			if !slices.Equal(got, want) {
				return fmt.Sprintf("sets have %v, want %v", got, want)
			}
			return ""
		})
	}
	controllertest.Patch(t, c, md, kubelet("1.36.1"))
	sizes(8, 5)
	controllertest.Patch(t, c, md, size(20))
	// 8 and 5 of 13 are 14 and 9 of 23.
	sizes(14, 9)
	actor.Up(func(*clusterv1alpha1.Machine) bool { return true })
	isComplete(t, c, md, 20)
	controllertest.Patch(t, c, md, size(4))
	isComplete(t, c, md, 4)
	if audit.Most() > 23 {
		t.Errorf("%d Machines at once", audit.Most())
	}
}

func TestABrokenTemplateStopsAndIsRolledBack(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 4, bounds("1", "1"))
	isComplete(t, c, md, 4)
	first := sets(t, c)[0].Name
	audit := c.Audit(t)
	c.Eventually(t, func() string {
		if audit.Made() != 4 {
			return "the audit has not seen all Machines"
		}
		return ""
	})
	audit.WatchFloor()
	actor.Up(func(m *clusterv1alpha1.Machine) bool { return m.Spec.Versions.Kubelet != "1.36.1" })
	controllertest.Patch(t, c, md, kubelet("1.36.1"))
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(md), md); err != nil {
			return err.Error()
		}
		s := md.Status
		if s.Replicas != 5 || s.UpdatedReplicas != 2 || s.AvailableReplicas != 3 || s.UnavailableReplicas != 1 {
			return fmt.Sprintf("status is %+v", s)
		}
		return ""
	})
	if !apimeta.IsStatusConditionTrue(md.Status.Conditions, clusterv1alpha1.ConditionAvailable) {
		t.Errorf("conditions: %+v", md.Status.Conditions)
	}
	second := sets(t, c)[1].Name
	broken := ""
	for _, m := range c.Machines(t) {
		if m.Spec.Versions.Kubelet == "1.36.1" && broken == "" {
			broken = m.Name
		}
	}
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return false })
	c.Fail(t, broken, clusterv1alpha1.ReasonSpecInvalid, "flavor: no such flavor")
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(md), md); err != nil {
			return err.Error()
		}
		f := apimeta.FindStatusCondition(md.Status.Conditions, clusterv1alpha1.ConditionReplicaFailure)
		if f == nil || f.Message != "Machine "+broken+": flavor: no such flavor" || f.Reason != clusterv1alpha1.ReasonTemplateInvalid {
			return fmt.Sprintf("ReplicaFailure is %+v", f)
		}
		return ""
	})
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return true })
	controllertest.Patch(t, c, md, kubelet("1.36.0"))
	isComplete(t, c, md, 4)
	within(t, audit, 5, 3)
	s := sets(t, c)
	if len(s) != 2 || s[0].Name != second || s[1].Name != first || revision(&s[1]) != 3 || revision(md) != 3 {
		t.Errorf("after the rollback: %v", tellSets(t, c))
	}
	if f := apimeta.FindStatusCondition(md.Status.Conditions, clusterv1alpha1.ConditionReplicaFailure); f != nil {
		t.Errorf("still %+v", f)
	}
}

func TestHistoryIsKeptAsLongAsWanted(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 1)
	for _, version := range []string{"1.36.1", "1.36.2", "1.36.3"} {
		isComplete(t, c, md, 1)
		controllertest.Patch(t, c, md, kubelet(version))
	}
	isComplete(t, c, md, 1)
	c.Eventually(t, func() string {
		s := sets(t, c)
		if len(s) != 2 || s[0].Spec.Template.Spec.Versions.Kubelet != "1.36.2" || s[1].Spec.Template.Spec.Versions.Kubelet != "1.36.3" {
			return fmt.Sprintf("sets: %v", tellSets(t, c))
		}
		return ""
	})
}

func TestADeploymentWithoutASizeIsGivenOne(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 0, func(md *clusterv1alpha1.MachineDeployment) {
		md.Spec.Replicas = nil
		md.Annotations = map[string]string{clusterv1alpha1.NodeGroupMinSizeAnnotation: "2"}
	})
	isComplete(t, c, md, 2)
	controllertest.Patch(t, c, md, size(3))
	isComplete(t, c, md, 3)
	controllertest.Patch(t, c, md, func(md *clusterv1alpha1.MachineDeployment) { md.Spec.Replicas = nil })
	isComplete(t, c, md, 3)
	if md.Spec.Replicas == nil || *md.Spec.Replicas != 3 {
		t.Errorf("replicas: %v", md.Spec.Replicas)
	}
}

func TestATakenNameIsAvoided(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	stop := manage(t, c)
	md := newDeployment(t, c, 1)
	isComplete(t, c, md, 1)
	stop()
	// Somebody takes its set for another group, and that keeps the name.
	set := sets(t, c)[0]
	name := set.Name
	controllertest.Patch(t, c, &set, func(s *clusterv1alpha1.MachineSet) { s.Labels["group"], s.OwnerReferences = "others", nil })
	manage(t, c)
	c.Eventually(t, func() string {
		if n := len(sets(t, c)); n != 2 {
			return fmt.Sprintf("%d sets", n)
		}
		return ""
	})
	isComplete(t, c, md, 1)
	if md.Status.CollisionCount == nil || *md.Status.CollisionCount != 1 {
		t.Errorf("collisions: %v", md.Status.CollisionCount)
	}
	for _, s := range sets(t, c) {
		if metav1.IsControlledBy(&s, md) == (s.Name == name) {
			t.Errorf("%s is ours: %t", s.Name, metav1.IsControlledBy(&s, md))
		}
	}
}

func TestAnOrphanedSetIsAdopted(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	stop := manage(t, c)
	md := newDeployment(t, c, 2)
	isComplete(t, c, md, 2)
	stop()
	set := sets(t, c)[0]
	controllertest.Patch(t, c, &set, func(s *clusterv1alpha1.MachineSet) { s.OwnerReferences = nil })
	if err := c.Delete(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	audit := c.Audit(t)
	md = newDeployment(t, c, 2)
	manage(t, c)
	isComplete(t, c, md, 2)
	if s := sets(t, c); len(s) != 1 || !metav1.IsControlledBy(&s[0], md) || audit.Made() > 2 {
		t.Errorf("sets: %v; %d Machines were made", tellSets(t, c), audit.Made())
	}
}

// The controllers are killed again and again in the middle of a rollout: its bounds hold.
func TestARolloutSurvivesItsControllers(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	stop := manage(t, c)
	md := newDeployment(t, c, 6, bounds("2", "1"))
	isComplete(t, c, md, 6)
	audit := c.Audit(t)
	c.Eventually(t, func() string {
		if audit.Made() != 6 {
			return "the audit has not seen all Machines"
		}
		return ""
	})
	audit.WatchFloor()
	controllertest.Patch(t, c, md, kubelet("1.36.1"))
	for made := 7; made <= 12; made++ {
		c.Eventually(t, func() string {
			if audit.Made() < made {
				return fmt.Sprintf("%d made", audit.Made())
			}
			return ""
		})
		stop()
		stop = manage(t, c)
	}
	isComplete(t, c, md, 6)
	within(t, audit, 8, 5)
	if audit.Made() != 12 {
		t.Errorf("%d Machines were made, 12 were needed", audit.Made())
	}
}
