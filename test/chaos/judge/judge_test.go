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

// historyBuilder puts a history together. Each change happens a minute after the one before, unless
// moveLastChangeTo says otherwise.
type historyBuilder struct {
	History

	now      time.Time
	revision int64
	machines map[string]*clusterv1alpha1.Machine
	vms      map[string]*backendv1alpha1.VM
	md       *clusterv1alpha1.MachineDeployment
	// ruined says that what is foreign is gone in the end.
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

func newHistory() *historyBuilder {
	return &historyBuilder{
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), machines: map[string]*clusterv1alpha1.Machine{}, vms: map[string]*backendv1alpha1.VM{},
	}
}

func (h *historyBuilder) pass(d time.Duration) { h.now = h.now.Add(d) }

func (h *historyBuilder) change(o client.Object, gone bool) {
	h.revision++
	h.Changes = append(h.Changes, Change{Revision: h.revision, At: h.now, Object: o, Gone: gone})
}

// setDeployment has the user want the deployment like this from now on. Its sets are told at once.
func (h *historyBuilder) setDeployment(replicas, surge, unavailable int32) {
	h.pass(time.Minute)
	h.md = &clusterv1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "md", UID: "md"}}
	h.md.Spec.Replicas = &replicas
	h.md.Spec.Strategy.RollingUpdate = &clusterv1alpha1.MachineRollingUpdate{
		MaxSurge: new(intstr.FromInt32(surge)), MaxUnavailable: new(intstr.FromInt32(unavailable)),
	}
	h.change(h.md, false)
	for _, name := range []string{"old", "new"} {
		h.change(machineSet(name, replicas), false)
	}
}

// scaleSet tells a set its size.
func (h *historyBuilder) scaleSet(name string, replicas int32) {
	h.pass(time.Minute)
	h.change(machineSet(name, replicas), false)
}

func machineSet(name string, replicas int32) *clusterv1alpha1.MachineSet {
	set := &clusterv1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	set.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", UID: "md", Controller: new(true)}}
	set.Spec.Replicas = &replicas
	return set
}

// moveLastChangeTo moves the last change to another instant.
func (h *historyBuilder) moveLastChangeTo(instant time.Time) {
	h.now, h.Changes[len(h.Changes)-1].At = instant, instant
}

// makeMachine makes a Machine of the set old, with a VM, that is Ready at once.
func (h *historyBuilder) makeMachine(name string) { h.makeMachineOf("old", name); h.makeVM(name, name) }

func (h *historyBuilder) makeMachineOf(set, name string) {
	h.pass(time.Minute)
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", UID: types.UID(set), Controller: new(true)}}
	m.Spec.MachineUID, m.Spec.ProviderID = new("uid-"+name), new("fake:///"+name)
	m.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(h.now)}}
	h.machines[name] = m
	h.change(m, false)
}

// editMachine changes a Machine.
func (h *historyBuilder) editMachine(name string, edit func(*clusterv1alpha1.Machine)) {
	h.pass(time.Minute)
	m := h.machines[name].DeepCopy()
	edit(m)
	h.machines[name] = m
	h.change(m, false)
}

func (h *historyBuilder) loseReady(name string) {
	h.editMachine(name, func(m *clusterv1alpha1.Machine) { m.Status.Conditions[0].Status = metav1.ConditionFalse })
}

func (h *historyBuilder) deleteMachine(name string) {
	h.editMachine(name, func(m *clusterv1alpha1.Machine) { m.DeletionTimestamp = new(metav1.NewTime(h.now)) })
}

func (h *historyBuilder) noteUserDeletes(name string) {
	h.Acts = append(h.Acts, Act{At: h.now, Until: h.now, Do: DeletedByHand, Target: "ns/" + name})
}

// endMachine ends a Machine and its VM, and an event says so.
func (h *historyBuilder) endMachine(name string) {
	h.endVM(name)
	h.sendEvent(name, corev1.EventTypeNormal, "Deleted")
	h.pass(time.Second)
	h.change(h.machines[name], true)
}

func (h *historyBuilder) sendEvent(machine, severity, reason string) {
	e := &corev1.Event{Type: severity, Reason: reason}
	e.InvolvedObject.UID = types.UID(machine)
	h.change(e, false)
}

// makeVM makes a VM for the uid of a Machine.
func (h *historyBuilder) makeVM(id, machine string) {
	v := &backendv1alpha1.VM{
		Id: id, ClusterUid: cluster, MachineUid: "uid-" + machine, State: backendv1alpha1.VMState_VM_STATE_RUNNING, CreateTime: timestamppb.New(h.now),
	}
	h.vms[id] = v
	h.VMs = append(h.VMs, v)
}

func (h *historyBuilder) endVM(id string) {
	h.pass(time.Second)
	h.vms[id].State, h.vms[id].DeleteTime = backendv1alpha1.VMState_VM_STATE_GONE, timestamppb.New(h.now)
}

func (h *historyBuilder) hinder(target string, long time.Duration) {
	h.Acts = append(h.Acts, Act{At: h.now, Until: h.now.Add(long), Do: Hindered, Target: target})
}

// holdResource adds something of that kind, cluster and machine uid to what the cloud holds in the
// end.
func (h *historyBuilder) holdResource(kind, cluster, uid string) {
	h.Resources = append(h.Resources, &backendv1alpha1.Resource{Kind: kind, Id: kind, ClusterUid: cluster, MachineUid: uid})
}

// end returns the history. In the end the cloud holds what VMs there are, and what is foreign.
func (h *historyBuilder) end() History {
	h.pass(time.Hour)
	h.change(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "any"}}, false)
	for _, v := range h.vms {
		if v.GetState() != backendv1alpha1.VMState_VM_STATE_GONE {
			h.Resources = append(h.Resources, &backendv1alpha1.Resource{Kind: "vm", Id: v.GetId(), ClusterUid: v.GetClusterUid(), MachineUid: v.GetMachineUid()})
		}
	}
	if !h.ruined {
		h.Resources = append(h.Resources, &backendv1alpha1.Resource{Kind: "port", Id: foreignThing})
	}
	return h.History
}

func judged(h History) []string {
	j := New(Options{
		Core: manager, ClusterUID: cluster, ForeignNodes: []string{foreignOne}, ForeignVMs: []string{foreignVM},
		Foreign: []string{foreignThing}, Resources: oneVM, StrayAge: strayAge, DrainTimeout: drainTimeout, Patience: 2 * time.Second,
		UnhealthyAfter: unhealthyAfter, DetachTimeout: detachTimeout,
	})
	var broken []string
	for _, v := range j.Judge(h) {
		broken = append(broken, v.Promise)
	}
	slices.Sort(broken)
	return slices.Compact(broken)
}

// makeThree makes a deployment of three that serve.
func makeThree(h *historyBuilder) {
	h.setDeployment(3, 1, 0)
	for _, name := range []string{"a", "b", "c"} {
		h.makeMachine(name)
	}
}

func tokenOf(uid string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + uid, Labels: map[string]string{machineUIDLabel: uid}}}
}

// scaleDownThenUp makes a deployment whose user wants none and then one again. Its set is told of
// none later than the user wanted one. It deletes the machine another two seconds later.
func scaleDownThenUp(h *historyBuilder, later time.Duration) {
	h.setDeployment(1, 1, 0)
	h.makeMachine("a")
	h.setDeployment(0, 1, 0)
	h.setDeployment(1, 1, 0)
	wanted := h.now
	h.scaleSet("old", 0)
	h.moveLastChangeTo(wanted.Add(later))
	h.deleteMachine("a")
	h.moveLastChangeTo(wanted.Add(later + 1900*time.Millisecond))
}

// userDeletesOneThenCore makes a deployment of which one may be missing. Its user deletes one, and
// core another one later.
func userDeletesOneThenCore(h *historyBuilder, later time.Duration) {
	h.setDeployment(3, 1, 1)
	for _, name := range []string{"a", "b", "c"} {
		h.makeMachine(name)
	}
	h.noteUserDeletes("a")
	h.deleteMachine("a")
	taken := h.now
	h.deleteMachine("b")
	h.moveLastChangeTo(taken.Add(later))
}

func TestGoodHistoriesBreakNoPromise(t *testing.T) {
	for name, history := range map[string]func(*historyBuilder){
		"machines come": makeThree,
		"a rollout takes one after its replacement serves": func(h *historyBuilder) {
			makeThree(h)
			h.makeMachineOf("new", "d")
			h.makeVM("d", "d")
			h.deleteMachine("a")
			h.endMachine("a")
		},
		"a machine that does not serve may go at any time": func(h *historyBuilder) {
			makeThree(h)
			h.loseReady("a")
			h.deleteMachine("a")
			h.endMachine("a")
		},
		"a machine that may have been Ready for a fraction of a second too little": func(h *historyBuilder) {
			deleteOneReadyForAMinute(h, 60)
			h.endMachine("a")
		},
		"a user deletes what he likes": func(h *historyBuilder) {
			makeThree(h)
			h.noteUserDeletes("a")
			h.deleteMachine("a")
			h.noteUserDeletes("b")
			h.deleteMachine("b")
		},
		"a user deletes one a moment before core deletes another": func(h *historyBuilder) {
			userDeletesOneThenCore(h, time.Second)
		},
		"a user wants fewer": func(h *historyBuilder) {
			makeThree(h)
			h.setDeployment(1, 1, 0)
			h.deleteMachine("a")
			h.deleteMachine("b")
		},
		"a machine deleted a moment after another has stopped to serve": func(h *historyBuilder) {
			h.setDeployment(2, 1, 0)
			h.makeMachine("a")
			h.makeMachine("b")
			h.makeMachineOf("new", "c")
			h.makeVM("c", "c")
			h.loseReady("b")
			h.pass(-time.Minute)
			h.deleteMachine("a")
			h.Changes[len(h.Changes)-1].At = h.Changes[len(h.Changes)-2].At.Add(time.Second)
		},
		"a machine made just after the deployment became smaller": func(h *historyBuilder) {
			h.setDeployment(3, 0, 1)
			h.makeMachine("a")
			h.makeMachine("b")
			h.setDeployment(1, 0, 1)
			h.makeMachine("c")
			h.Changes[len(h.Changes)-1].At = h.Changes[len(h.Changes)-4].At.Add(time.Second)
		},
		"a set does what it was just told by who had not seen yet that the user wants more": func(h *historyBuilder) {
			scaleDownThenUp(h, time.Second)
		},
		"the same, a minute later, by a manager that was stopped": func(h *historyBuilder) {
			h.setDeployment(3, 0, 1)
			h.makeMachine("a")
			h.makeMachine("b")
			h.setDeployment(1, 0, 1)
			h.hinder("manager", time.Minute)
			h.makeMachine("c")
		},
		"a stray goes when it is old enough": func(h *historyBuilder) {
			h.setDeployment(0, 1, 0)
			h.makeVM("stray", "stray")
			h.Acts = append(h.Acts, Act{At: h.now, Do: Planted, Target: "stray"})
			h.pass(strayAge)
			h.endVM("stray")
		},
		"a machine fails, and an event says so": func(h *historyBuilder) {
			makeThree(h)
			h.editMachine("a", func(m *clusterv1alpha1.Machine) { m.Status.Phase = clusterv1alpha1.MachinePhaseFailed })
			h.sendEvent("a", corev1.EventTypeWarning, "Missing")
		},
		"a machine fails, and the API server refuses the event, for its etcd is away": func(h *historyBuilder) {
			makeThree(h)
			h.hinder("etcd", time.Hour)
			h.editMachine("a", func(m *clusterv1alpha1.Machine) { m.Status.Phase = clusterv1alpha1.MachinePhaseFailed })
		},
		"a manager exits because the API server is away": func(h *historyBuilder) {
			makeThree(h)
			h.hinder("kube-apiserver", 10*time.Second)
			h.Ends = append(h.Ends, End{At: h.now.Add(time.Second), Process: "manager", State: "exit status 1"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			history(h)
			if broken := judged(h.end()); len(broken) > 0 {
				t.Errorf("it breaks %q", broken)
			}
		})
	}
}

func TestBadHistoriesBreakAPromise(t *testing.T) {
	for name, tc := range map[string]struct {
		history func(*historyBuilder)
		want    []string
	}{
		"two VMs of a machine": {func(h *historyBuilder) { makeThree(h); h.makeVM("a2", "a") }, []string{OneVM, NoneLeft}},
		"two VMs of a machine, one after the other": {func(h *historyBuilder) {
			makeThree(h)
			h.endVM("a")
			h.makeVM("a2", "a")
		}, []string{OneVM}},
		"a VM of a uid that no machine ever had": {func(h *historyBuilder) {
			makeThree(h)
			h.makeVM("x", "nobody")
			h.endVM("x")
		}, []string{OneVM}},
		"a name that comes again": {func(h *historyBuilder) {
			makeThree(h)
			h.noteUserDeletes("a")
			h.deleteMachine("a")
			h.endMachine("a")
			h.makeMachineOf("old", "a")
			h.machines["a"].UID, h.machines["a"].Spec.MachineUID = "another", new("uid-another")
			h.makeVM("another", "another")
		}, []string{OneVM}},
		"a machine with another uid than before": {func(h *historyBuilder) {
			makeThree(h)
			h.editMachine("a", func(m *clusterv1alpha1.Machine) { m.Spec.MachineUID = new("uid-z") })
		}, []string{OneVM, NoneLeft}},
		"a VM that outlives its machine": {func(h *historyBuilder) {
			makeThree(h)
			h.loseReady("a")
			h.deleteMachine("a")
			h.change(h.machines["a"], true)
			h.sendEvent("a", corev1.EventTypeNormal, "Deleted")
			h.endVM("a")
		}, []string{NoneLeft}},
		"a VM without a machine in the end": {func(h *historyBuilder) {
			makeThree(h)
			h.loseReady("a")
			h.deleteMachine("a")
			h.change(h.machines["a"], true)
			h.sendEvent("a", corev1.EventTypeNormal, "Deleted")
		}, []string{NoneLeft}},
		"a machine without a VM in the end": {func(h *historyBuilder) { makeThree(h); h.endVM("a") }, []string{NoneLeft}},
		"a NIC that is left": {func(h *historyBuilder) {
			makeThree(h)
			h.holdResource("nic", cluster, "uid-of-old")
		}, []string{NoneLeft}},
		"a floating IP more than a machine needs": {func(h *historyBuilder) { makeThree(h); h.holdResource("floatingip", cluster, "uid-a") }, []string{NoneLeft}},
		"a volume of nobody is left":              {func(h *historyBuilder) { makeThree(h); h.holdResource("volume", "", "") }, []string{NoneLeft}},
		"one machine too many": {func(h *historyBuilder) {
			makeThree(h)
			h.makeMachine("d")
			h.makeMachine("e")
		}, []string{Surge}},
		"one too many while others are on their way out": {func(h *historyBuilder) {
			makeThree(h)
			h.loseReady("a")
			h.deleteMachine("a")
			h.makeMachine("d")
			h.loseReady("b")
			h.deleteMachine("b")
			h.makeMachine("e")
		}, []string{Surge}},
		"the last that serve are deleted by core":                   {func(h *historyBuilder) { makeThree(h); h.deleteMachine("a") }, []string{Availability}},
		"the last that serves, for just long enough":                {func(h *historyBuilder) { deleteOneReadyForAMinute(h, 59) }, []string{Availability}},
		"a user has deleted one for long when core deletes another": {func(h *historyBuilder) { userDeletesOneThenCore(h, 3*time.Second) }, []string{Availability}},
		"a set is told what its user has long taken back":           {func(h *historyBuilder) { scaleDownThenUp(h, 3*time.Second) }, []string{Availability}},
		"too few, as one has stopped to serve a minute before": {func(h *historyBuilder) {
			makeThree(h)
			h.makeMachineOf("new", "d")
			h.makeVM("d", "d")
			h.loseReady("d")
			h.deleteMachine("a")
		}, []string{Availability}},
		"a foreign VM is called for": {func(h *historyBuilder) {
			makeThree(h)
			h.Calls = append(h.Calls, &backendv1alpha1.Call{Operation: "DeleteVM", ResourceId: foreignVM})
		}, []string{Foreign}},
		"a foreign port is called for": {func(h *historyBuilder) {
			makeThree(h)
			h.Calls = append(h.Calls, &backendv1alpha1.Call{Operation: "DeletePort", ResourceId: foreignThing})
		}, []string{Foreign}},
		"a foreign port is gone": {func(h *historyBuilder) { makeThree(h); h.ruined = true }, []string{Foreign}},
		"a foreign VM is gone": {func(h *historyBuilder) {
			h.setDeployment(0, 1, 0)
			h.VMs = append(h.VMs, &backendv1alpha1.VM{Id: foreignVM, ClusterUid: "another", State: backendv1alpha1.VMState_VM_STATE_GONE})
		}, []string{Foreign}},
		"a foreign Node is written to": {func(h *historyBuilder) {
			h.setDeployment(0, 1, 0)
			h.Writes = append(h.Writes, Write{User: manager, Verb: "patch", Resource: "nodes/status", Name: foreignOne})
		}, []string{Foreign}},
		"a foreign Node is gone": {func(h *historyBuilder) {
			h.setDeployment(0, 1, 0)
			h.change(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: foreignOne}}, true)
		}, []string{Foreign}},
		"a stray goes too early": {func(h *historyBuilder) {
			h.setDeployment(0, 1, 0)
			h.makeVM("stray", "stray")
			h.Acts = append(h.Acts, Act{At: h.now, Do: Planted, Target: "stray"})
			h.pass(strayAge / 2)
			h.endVM("stray")
		}, []string{Foreign}},
		"a machine is gone without a word": {func(h *historyBuilder) {
			makeThree(h)
			h.loseReady("a")
			h.deleteMachine("a")
			h.endVM("a")
			h.pass(time.Second)
			h.change(h.machines["a"], true)
		}, []string{Stories}},
		"a machine fails without a word": {func(h *historyBuilder) {
			makeThree(h)
			h.editMachine("a", func(m *clusterv1alpha1.Machine) { m.Status.Phase = clusterv1alpha1.MachinePhaseFailed })
			h.sendEvent("a", corev1.EventTypeNormal, "Created")
		}, []string{Stories}},
		"a token of a machine that runs": {func(h *historyBuilder) {
			makeThree(h)
			h.editMachine("a", func(m *clusterv1alpha1.Machine) { m.Status.Phase = clusterv1alpha1.MachinePhaseRunning })
			h.change(tokenOf(uidOf(h.machines["a"])), false)
		}, []string{NoneLeft}},
		"a token of a machine that is gone": {func(h *historyBuilder) {
			makeThree(h)
			h.change(tokenOf("gone"), false)
		}, []string{NoneLeft}},
		"a secret in a log": {func(h *historyBuilder) { makeThree(h); h.Finds = []Find{{Process: "manager", What: Canary}} }, []string{Secrets}},
		"a race":            {func(h *historyBuilder) { makeThree(h); h.Finds = []Find{{Process: "driver", What: "a data race"}} }, []string{Sound}},
		"a crash": {func(h *historyBuilder) {
			makeThree(h)
			h.Ends = append(h.Ends, End{At: h.now, Process: "manager", State: "exit status 2"})
		}, []string{Sound}},
		"an exit without a reason": {func(h *historyBuilder) {
			makeThree(h)
			h.Ends = append(h.Ends, End{At: h.now, Process: "manager", State: "exit status 1"})
		}, []string{Sound}},
		"a world that does not settle": {func(h *historyBuilder) { makeThree(h); h.Unsettled = "a machine is being deleted" }, []string{Settles}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			tc.history(h)
			if broken := judged(h.end()); !slices.Equal(broken, tc.want) {
				t.Errorf("it breaks %q, want %q", broken, tc.want)
			}
		})
	}
}

// A judge remembers what it saw in earlier histories.
func TestJudgeRemembersEarlierHistories(t *testing.T) {
	h := newHistory()
	makeThree(h)
	j := New(Options{Core: manager, ClusterUID: cluster, Foreign: []string{foreignThing}, Resources: oneVM, Patience: 2 * time.Second})
	if broken := j.Judge(h.end()); len(broken) > 0 {
		t.Fatalf("it breaks %v", broken)
	}
	h.History = History{}
	h.makeVM("a2", "a")
	broken := j.Judge(h.end())
	if len(broken) == 0 || broken[0].Promise != OneVM || !strings.Contains(fmt.Sprint(broken[0]), "uid-a") {
		t.Errorf("a second VM in a later history: %v", broken)
	}
	if !strings.Contains(j.Summary(), "3 Machines, 4 VMs") {
		t.Errorf("it judged %s", j.Summary())
	}
}
