package judge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// tale tells a history by hand. Each call happens a minute after the one before, unless at says
// otherwise.
type tale struct {
	History

	now      time.Time
	revision int64
	machines map[string]*clusterv1alpha1.Machine
	vms      map[string]*backendv1alpha1.VM
	md       *clusterv1alpha1.MachineDeployment
	// ruined: what is foreign is gone in the end.
	ruined bool
}

const (
	manager    = "system:serviceaccount:millwright-system:millwright-manager"
	cluster    = "this-cluster"
	foreignVM  = "vm-foreign"
	strayAge   = 30 * time.Second
	foreignOne = "foreign"
	// foreignThing is a port that the cloud has held from the beginning.
	foreignThing = "port-foreign"
)

// oneVM is all that Machines have here.
func oneVM(*clusterv1alpha1.Machine) map[string]int { return map[string]int{"vm": 1} }

func newTale() *tale {
	return &tale{
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), machines: map[string]*clusterv1alpha1.Machine{}, vms: map[string]*backendv1alpha1.VM{},
	}
}

func (t *tale) after(d time.Duration) { t.now = t.now.Add(d) }

func (t *tale) change(o client.Object, gone bool) {
	t.revision++
	t.Changes = append(t.Changes, Change{Revision: t.revision, At: t.now, Object: o, Gone: gone})
}

// deployment is wanted like this from now on, and its sets are told at once.
func (t *tale) deployment(replicas, surge, unavailable int32) {
	t.after(time.Minute)
	t.md = &clusterv1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "md", UID: "md"}}
	t.md.Spec.Replicas = &replicas
	t.md.Spec.Strategy.RollingUpdate = &clusterv1alpha1.MachineRollingUpdate{
		MaxSurge: new(intstr.FromInt32(surge)), MaxUnavailable: new(intstr.FromInt32(unavailable)),
	}
	t.change(t.md, false)
	for _, name := range []string{"old", "new"} {
		t.change(machineSet(name, replicas), false)
	}
}

// scaled tells a set its size.
func (t *tale) scaled(name string, replicas int32) {
	t.after(time.Minute)
	t.change(machineSet(name, replicas), false)
}

func machineSet(name string, replicas int32) *clusterv1alpha1.MachineSet {
	set := &clusterv1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	set.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", UID: "md", Controller: new(true)}}
	set.Spec.Replicas = &replicas
	return set
}

// at moves the last change to another instant.
func (t *tale) at(instant time.Time) { t.now, t.Changes[len(t.Changes)-1].At = instant, instant }

// made makes a Machine of the set old, with a VM, that is Ready at once.
func (t *tale) made(name string) { t.madeBy("old", name); t.vm(name, name) }

func (t *tale) madeBy(set, name string) {
	t.after(time.Minute)
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", UID: types.UID(set), Controller: new(true)}}
	m.Spec.MachineUID, m.Spec.ProviderID = new("uid-"+name), new("fake:///"+name)
	m.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(t.now)}}
	t.machines[name] = m
	t.change(m, false)
}

// edit changes a Machine.
func (t *tale) edit(name string, edit func(*clusterv1alpha1.Machine)) {
	t.after(time.Minute)
	m := t.machines[name].DeepCopy()
	edit(m)
	t.machines[name] = m
	t.change(m, false)
}

func (t *tale) unready(name string) {
	t.edit(name, func(m *clusterv1alpha1.Machine) { m.Status.Conditions[0].Status = metav1.ConditionFalse })
}

func (t *tale) deleted(name string) {
	t.edit(name, func(m *clusterv1alpha1.Machine) { m.DeletionTimestamp = new(metav1.NewTime(t.now)) })
}

func (t *tale) byHand(name string) {
	t.Acts = append(t.Acts, Act{At: t.now, Until: t.now, Do: DeletedByHand, Target: "ns/" + name})
}

// gone ends a Machine and its VM, and an event says so.
func (t *tale) gone(name string) {
	t.vmGone(name)
	t.event(name, corev1.EventTypeNormal, "Deleted")
	t.after(time.Second)
	t.change(t.machines[name], true)
}

func (t *tale) event(machine, severity, reason string) {
	e := &corev1.Event{Type: severity, Reason: reason}
	e.InvolvedObject.UID = types.UID(machine)
	t.change(e, false)
}

// vm makes a VM for the uid of a Machine.
func (t *tale) vm(id, machine string) {
	v := &backendv1alpha1.VM{
		Id: id, ClusterUid: cluster, MachineUid: "uid-" + machine, State: backendv1alpha1.VMState_VM_STATE_RUNNING, CreateTime: timestamppb.New(t.now),
	}
	t.vms[id] = v
	t.VMs = append(t.VMs, v)
}

func (t *tale) vmGone(id string) {
	t.after(time.Second)
	t.vms[id].State, t.vms[id].DeleteTime = backendv1alpha1.VMState_VM_STATE_GONE, timestamppb.New(t.now)
}

func (t *tale) hindered(target string, long time.Duration) {
	t.Acts = append(t.Acts, Act{At: t.now, Until: t.now.Add(long), Do: Hindered, Target: target})
}

// holds adds something of that kind, cluster and machine uid to what the cloud holds in the end.
func (t *tale) holds(kind, cluster, uid string) {
	t.Resources = append(t.Resources, &backendv1alpha1.Resource{Kind: kind, Id: kind, ClusterUid: cluster, MachineUid: uid})
}

// told ends the tale: the cloud holds what VMs there are, and what is foreign.
func (t *tale) told() History {
	t.after(time.Hour)
	t.change(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "any"}}, false)
	for _, v := range t.vms {
		if v.GetState() != backendv1alpha1.VMState_VM_STATE_GONE {
			t.Resources = append(t.Resources, &backendv1alpha1.Resource{Kind: "vm", Id: v.GetId(), ClusterUid: v.GetClusterUid(), MachineUid: v.GetMachineUid()})
		}
	}
	if !t.ruined {
		t.Resources = append(t.Resources, &backendv1alpha1.Resource{Kind: "port", Id: foreignThing})
	}
	return t.History
}

func judged(h History) []string {
	j := New(Options{
		Core: manager, ClusterUID: cluster, ForeignNodes: []string{foreignOne}, ForeignVMs: []string{foreignVM},
		Foreign: []string{foreignThing}, Resources: oneVM, StrayAge: strayAge, DrainTimeout: drainTimeout, Patience: 2 * time.Second,
	})
	var broken []string
	for _, v := range j.Judge(h) {
		broken = append(broken, v.Promise)
	}
	slices.Sort(broken)
	return slices.Compact(broken)
}

// three is a deployment of three that serve.
func three(t *tale) {
	t.deployment(3, 1, 0)
	for _, name := range []string{"a", "b", "c"} {
		t.made(name)
	}
}

// toldToGo is a deployment that was to go down to none, and then to stay: its set is told the first
// later than its user said the second, and does it another two seconds later.
func toldToGo(t *tale, later time.Duration) {
	t.deployment(1, 1, 0)
	t.made("a")
	t.deployment(0, 1, 0)
	t.deployment(1, 1, 0)
	wanted := t.now
	t.scaled("old", 0)
	t.at(wanted.Add(later))
	t.deleted("a")
	t.at(wanted.Add(later + 1900*time.Millisecond))
}

// userTakes is a deployment of which one may be missing: its user takes one, and core another one
// later.
func userTakes(t *tale, later time.Duration) {
	t.deployment(3, 1, 1)
	for _, name := range []string{"a", "b", "c"} {
		t.made(name)
	}
	t.byHand("a")
	t.deleted("a")
	taken := t.now
	t.deleted("b")
	t.at(taken.Add(later))
}

func TestGoodHistories(t *testing.T) {
	for name, tell := range map[string]func(*tale){
		"machines come": three,
		"a rollout takes one after its replacement serves": func(t *tale) {
			three(t)
			t.madeBy("new", "d")
			t.vm("d", "d")
			t.deleted("a")
			t.gone("a")
		},
		"a machine that does not serve may go at any time": func(t *tale) {
			three(t)
			t.unready("a")
			t.deleted("a")
			t.gone("a")
		},
		"a user deletes what he likes": func(t *tale) {
			three(t)
			t.byHand("a")
			t.deleted("a")
			t.byHand("b")
			t.deleted("b")
		},
		"a user deletes one a moment before core deletes another": func(t *tale) {
			userTakes(t, time.Second)
		},
		"a user wants fewer": func(t *tale) {
			three(t)
			t.deployment(1, 1, 0)
			t.deleted("a")
			t.deleted("b")
		},
		"a machine deleted a moment after another has stopped to serve": func(t *tale) {
			t.deployment(2, 1, 0)
			t.made("a")
			t.made("b")
			t.madeBy("new", "c")
			t.vm("c", "c")
			t.unready("b")
			t.after(-time.Minute)
			t.deleted("a")
			t.Changes[len(t.Changes)-1].At = t.Changes[len(t.Changes)-2].At.Add(time.Second)
		},
		"a machine made just after the deployment became smaller": func(t *tale) {
			t.deployment(3, 0, 1)
			t.made("a")
			t.made("b")
			t.deployment(1, 0, 1)
			t.made("c")
			t.Changes[len(t.Changes)-1].At = t.Changes[len(t.Changes)-4].At.Add(time.Second)
		},
		"a set does what it was just told by who had not seen yet that the user wants more": func(t *tale) {
			toldToGo(t, time.Second)
		},
		"the same, a minute later, by a manager that was stopped": func(t *tale) {
			t.deployment(3, 0, 1)
			t.made("a")
			t.made("b")
			t.deployment(1, 0, 1)
			t.hindered("manager", time.Minute)
			t.made("c")
		},
		"a stray goes when it is old enough": func(t *tale) {
			t.deployment(0, 1, 0)
			t.vm("stray", "stray")
			t.Acts = append(t.Acts, Act{At: t.now, Do: Planted, Target: "stray"})
			t.after(strayAge)
			t.vmGone("stray")
		},
		"a machine fails, and an event says so": func(t *tale) {
			three(t)
			t.edit("a", func(m *clusterv1alpha1.Machine) { m.Status.Phase = clusterv1alpha1.MachinePhaseFailed })
			t.event("a", corev1.EventTypeWarning, "Missing")
		},
		"a machine fails, and the API server refuses the event, for its etcd is away": func(t *tale) {
			three(t)
			t.hindered("etcd", time.Hour)
			t.edit("a", func(m *clusterv1alpha1.Machine) { m.Status.Phase = clusterv1alpha1.MachinePhaseFailed })
		},
		"a manager exits because the API server is away": func(t *tale) {
			three(t)
			t.hindered("kube-apiserver", 10*time.Second)
			t.Ends = append(t.Ends, End{At: t.now.Add(time.Second), Process: "manager", State: "exit status 1"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			one := newTale()
			tell(one)
			if broken := judged(one.told()); len(broken) > 0 {
				t.Errorf("it breaks %q", broken)
			}
		})
	}
}

func TestBadHistories(t *testing.T) {
	for name, tc := range map[string]struct {
		tell func(*tale)
		want []string
	}{
		"two VMs of a machine": {func(t *tale) { three(t); t.vm("a2", "a") }, []string{OneVM, NoneLeft}},
		"two VMs of a machine, one after the other": {func(t *tale) {
			three(t)
			t.vmGone("a")
			t.vm("a2", "a")
		}, []string{OneVM}},
		"a VM of a uid that no machine ever had": {func(t *tale) {
			three(t)
			t.vm("x", "nobody")
			t.vmGone("x")
		}, []string{OneVM}},
		"a name that comes again": {func(t *tale) {
			three(t)
			t.byHand("a")
			t.deleted("a")
			t.gone("a")
			t.madeBy("old", "a")
			t.machines["a"].UID, t.machines["a"].Spec.MachineUID = "another", new("uid-another")
			t.vm("another", "another")
		}, []string{OneVM}},
		"a machine with another uid than before": {func(t *tale) {
			three(t)
			t.edit("a", func(m *clusterv1alpha1.Machine) { m.Spec.MachineUID = new("uid-z") })
		}, []string{OneVM, NoneLeft}},
		"a VM that outlives its machine": {func(t *tale) {
			three(t)
			t.unready("a")
			t.deleted("a")
			t.change(t.machines["a"], true)
			t.event("a", corev1.EventTypeNormal, "Deleted")
			t.vmGone("a")
		}, []string{NoneLeft}},
		"a VM without a machine in the end": {func(t *tale) {
			three(t)
			t.unready("a")
			t.deleted("a")
			t.change(t.machines["a"], true)
			t.event("a", corev1.EventTypeNormal, "Deleted")
		}, []string{NoneLeft}},
		"a machine without a VM in the end": {func(t *tale) { three(t); t.vmGone("a") }, []string{NoneLeft}},
		"a NIC that is left": {func(t *tale) {
			three(t)
			t.holds("nic", cluster, "uid-of-old")
		}, []string{NoneLeft}},
		"a floating IP more than a machine needs": {func(t *tale) { three(t); t.holds("floatingip", cluster, "uid-a") }, []string{NoneLeft}},
		"a volume of nobody is left":              {func(t *tale) { three(t); t.holds("volume", "", "") }, []string{NoneLeft}},
		"one machine too many": {func(t *tale) {
			three(t)
			t.made("d")
			t.made("e")
		}, []string{Surge}},
		"one too many while others are on their way out": {func(t *tale) {
			three(t)
			t.unready("a")
			t.deleted("a")
			t.made("d")
			t.unready("b")
			t.deleted("b")
			t.made("e")
		}, []string{Surge}},
		"the last that serve are deleted by core":                   {func(t *tale) { three(t); t.deleted("a") }, []string{Availability}},
		"a user has deleted one for long when core deletes another": {func(t *tale) { userTakes(t, 3*time.Second) }, []string{Availability}},
		"a set is told what its user has long taken back":           {func(t *tale) { toldToGo(t, 3*time.Second) }, []string{Availability}},
		"too few, as one has stopped to serve a minute before": {func(t *tale) {
			three(t)
			t.madeBy("new", "d")
			t.vm("d", "d")
			t.unready("d")
			t.deleted("a")
		}, []string{Availability}},
		"a foreign VM is called for": {func(t *tale) {
			three(t)
			t.Calls = append(t.Calls, &backendv1alpha1.Call{Operation: "DeleteVM", ResourceId: foreignVM})
		}, []string{Foreign}},
		"a foreign port is called for": {func(t *tale) {
			three(t)
			t.Calls = append(t.Calls, &backendv1alpha1.Call{Operation: "DeletePort", ResourceId: foreignThing})
		}, []string{Foreign}},
		"a foreign port is gone": {func(t *tale) { three(t); t.ruined = true }, []string{Foreign}},
		"a foreign VM is gone": {func(t *tale) {
			t.deployment(0, 1, 0)
			t.VMs = append(t.VMs, &backendv1alpha1.VM{Id: foreignVM, ClusterUid: "another", State: backendv1alpha1.VMState_VM_STATE_GONE})
		}, []string{Foreign}},
		"a foreign Node is written to": {func(t *tale) {
			t.deployment(0, 1, 0)
			t.Writes = append(t.Writes, Write{User: manager, Verb: "patch", Resource: "nodes/status", Name: foreignOne})
		}, []string{Foreign}},
		"a foreign Node is gone": {func(t *tale) {
			t.deployment(0, 1, 0)
			t.change(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: foreignOne}}, true)
		}, []string{Foreign}},
		"a stray goes too early": {func(t *tale) {
			t.deployment(0, 1, 0)
			t.vm("stray", "stray")
			t.Acts = append(t.Acts, Act{At: t.now, Do: Planted, Target: "stray"})
			t.after(strayAge / 2)
			t.vmGone("stray")
		}, []string{Foreign}},
		"a machine is gone without a word": {func(t *tale) {
			three(t)
			t.unready("a")
			t.deleted("a")
			t.vmGone("a")
			t.after(time.Second)
			t.change(t.machines["a"], true)
		}, []string{Stories}},
		"a machine fails without a word": {func(t *tale) {
			three(t)
			t.edit("a", func(m *clusterv1alpha1.Machine) { m.Status.Phase = clusterv1alpha1.MachinePhaseFailed })
			t.event("a", corev1.EventTypeNormal, "Created")
		}, []string{Stories}},
		"a secret in a log": {func(t *tale) { three(t); t.Finds = []Find{{Process: "manager", What: Canary}} }, []string{Secrets}},
		"a race":            {func(t *tale) { three(t); t.Finds = []Find{{Process: "driver", What: "a data race"}} }, []string{Sound}},
		"a crash": {func(t *tale) {
			three(t)
			t.Ends = append(t.Ends, End{At: t.now, Process: "manager", State: "exit status 2"})
		}, []string{Sound}},
		"an exit without a reason": {func(t *tale) {
			three(t)
			t.Ends = append(t.Ends, End{At: t.now, Process: "manager", State: "exit status 1"})
		}, []string{Sound}},
		"a world that does not settle": {func(t *tale) { three(t); t.Unsettled = "a machine is being deleted" }, []string{Settles}},
	} {
		t.Run(name, func(t *testing.T) {
			one := newTale()
			tc.tell(one)
			if broken := judged(one.told()); !slices.Equal(broken, tc.want) {
				t.Errorf("it breaks %q, want %q", broken, tc.want)
			}
		})
	}
}

// A judge goes on where it was, history after history.
func TestHistoriesGoOn(t *testing.T) {
	one := newTale()
	three(one)
	j := New(Options{Core: manager, ClusterUID: cluster, Foreign: []string{foreignThing}, Resources: oneVM, Patience: 2 * time.Second})
	if broken := j.Judge(one.told()); len(broken) > 0 {
		t.Fatalf("it breaks %v", broken)
	}
	one.History = History{}
	one.vm("a2", "a")
	broken := j.Judge(one.told())
	if len(broken) == 0 || broken[0].Promise != OneVM || !strings.Contains(fmt.Sprint(broken[0]), "uid-a") {
		t.Errorf("a second VM in a later history: %v", broken)
	}
	if !strings.Contains(j.Summary(), "3 Machines, 4 VMs") {
		t.Errorf("it judged %s", j.Summary())
	}
}
