package judge

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

const (
	drainTimeout = 2 * time.Hour
	// podGrace is longer than anything that happens while a pod ends.
	podGrace = time.Hour
)

// putOnNode gives a Machine a Node, which has its name, and a pod there.
func (h *historyBuilder) putOnNode(machine, pod string) {
	h.editMachine(machine, func(m *clusterv1alpha1.Machine) { m.Status.NodeRef = &corev1.ObjectReference{Name: machine} })
	h.changePod(machine, pod, func(*corev1.Pod) {}, false)
}

func (h *historyBuilder) changePod(node, name string, edit func(*corev1.Pod), gone bool) {
	h.pass(time.Second)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: name, UID: types.UID(name)}}
	p.Spec.NodeName = node
	edit(p)
	h.change(p, gone)
}

// terminate tells a pod to end, and gives it podGrace.
func (h *historyBuilder) terminate(p *corev1.Pod) {
	p.DeletionTimestamp = new(metav1.NewTime(h.now.Add(podGrace)))
}

func (h *historyBuilder) notePodWrite(user, verb, resource, pod string) {
	h.Writes = append(h.Writes, Write{At: h.now, User: user, Verb: verb, Resource: resource, Namespace: "app", Name: pod})
}

// evict has core evict the pod, which has podGrace to end.
func (h *historyBuilder) evict(node, pod string) {
	h.notePodWrite(manager, "create", "pods/eviction", pod)
	h.changePod(node, pod, h.terminate, false)
}

// deleteMachineAndVM has a user delete a Machine, and its VM be deleted a while after that.
func (h *historyBuilder) deleteMachineAndVM(machine string, while time.Duration) {
	h.noteUserDeletes(machine)
	h.deleteMachine(machine)
	h.deleteVM(machine, while)
}

// deleteVM has core delete a Machine's VM after a while, which may be negative.
func (h *historyBuilder) deleteVM(machine string, while time.Duration) {
	h.pass(while)
	h.Calls = append(h.Calls, &backendv1alpha1.Call{Operation: "DeleteVM", ResourceId: machine, ReceiveTime: timestamppb.New(h.now)})
}

func TestPodsThatMayBeLost(t *testing.T) {
	for name, history := range map[string]func(*historyBuilder){
		"a pod has ended before its VM goes": func(h *historyBuilder) {
			h.putOnNode("a", "p")
			h.noteUserDeletes("a")
			h.deleteMachine("a")
			h.evict("a", "p")
			h.changePod("a", "p", h.terminate, true)
			h.deleteMachineAndVM("a", time.Second)
		},
		"a pod does not end in the time that it has": func(h *historyBuilder) {
			h.putOnNode("a", "p")
			h.evict("a", "p")
			h.deleteMachineAndVM("a", podGrace)
		},
		"the time for the drain is over": func(h *historyBuilder) {
			h.putOnNode("a", "p")
			h.deleteMachineAndVM("a", drainTimeout)
		},
		"somebody else has stopped the VM": func(h *historyBuilder) {
			h.putOnNode("a", "p")
			h.Acts = append(h.Acts, Act{At: h.now, Until: h.now, Do: Changed, Target: "a"})
			h.deleteMachineAndVM("a", time.Second)
		},
		"somebody else has deleted the Node": func(h *historyBuilder) {
			h.putOnNode("a", "p")
			h.change(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, true)
			h.deleteMachineAndVM("a", time.Minute)
		},
		"a pod came after the drain had begun": func(h *historyBuilder) {
			h.putOnNode("a", "p")
			h.changePod("a", "p", h.terminate, true)
			h.noteUserDeletes("a")
			h.deleteMachine("a")
			h.changePod("a", "late", func(*corev1.Pod) {}, false)
			h.deleteMachineAndVM("a", time.Minute)
		},
		"pods of another Node": func(h *historyBuilder) {
			h.putOnNode("a", "p")
			h.putOnNode("b", "q")
			h.changePod("a", "p", h.terminate, true)
			h.deleteMachineAndVM("a", time.Minute)
		},
		"a pod ends by itself": func(h *historyBuilder) {
			h.putOnNode("a", "p")
			h.changePod("a", "p", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, false)
			h.deleteMachineAndVM("a", time.Minute)
		},
		"others delete pods as they like": func(h *historyBuilder) {
			h.putOnNode("a", "p")
			h.notePodWrite("somebody", "delete", "pods", "p")
			h.changePod("a", "p", func(*corev1.Pod) {}, true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			makeThree(h)
			history(h)
			if broken := judged(h.end()); len(broken) > 0 {
				t.Errorf("it breaks %q", broken)
			}
		})
	}
}

func TestPodsThatMayNotBeLost(t *testing.T) {
	for name, history := range map[string]func(*historyBuilder){
		"the VM goes under a pod that has time left": func(h *historyBuilder) {
			h.putOnNode("a", "p")
			h.evict("a", "p")
			h.deleteMachineAndVM("a", podGrace/2)
		},
		"the VM goes under a pod that nobody told to end": func(h *historyBuilder) {
			h.putOnNode("a", "p")
			h.deleteMachineAndVM("a", drainTimeout/2)
		},
		"the VM goes while its Machine is to stay": func(h *historyBuilder) {
			h.putOnNode("a", "p")
			h.Calls = append(h.Calls, &backendv1alpha1.Call{Operation: "DeleteVM", ResourceId: "a", ReceiveTime: timestamppb.New(h.now.Add(time.Second))})
		},
		"a pod is evicted without any time": func(h *historyBuilder) {
			h.putOnNode("a", "p")
			h.notePodWrite(manager, "create", "pods/eviction", "p")
			h.changePod("a", "p", func(*corev1.Pod) {}, true)
		},
		"core deletes a pod": func(h *historyBuilder) {
			h.putOnNode("a", "p")
			h.notePodWrite(manager, "delete", "pods", "p")
			h.changePod("a", "p", h.terminate, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			makeThree(h)
			history(h)
			if broken := judged(h.end()); !slices.Equal(broken, []string{Pods}) {
				t.Errorf("it breaks %q, want %q", broken, Pods)
			}
		})
	}
}

// claimVM has a user make a Machine by hand with the providerID of another VM.
func (h *historyBuilder) claimVM(name string) {
	h.makeMachineOf("old", name)
	h.machines[name].OwnerReferences = nil
}

func TestForeignVMsAndPodsStay(t *testing.T) {
	for name, tc := range map[string]struct {
		history func(*historyBuilder)
		want    []string
	}{
		"a claim is made and goes again": {history: func(h *historyBuilder) {
			h.deleteMachine("claim")
			h.change(h.machines["claim"], true)
		}},
		"a VM is made for it": {history: func(h *historyBuilder) { h.makeVM("v", "claim"); h.endVM("v") }, want: []string{Foreign}},
		"a pod of the foreign Node is told to end": {history: func(h *historyBuilder) {
			h.changePod(foreignOne, "p", h.terminate, false)
		}, want: []string{Foreign}},
		"a pod of the foreign Node stays": {history: func(h *historyBuilder) { h.changePod(foreignOne, "p", func(*corev1.Pod) {}, false) }},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			makeThree(h)
			h.claimVM("claim")
			tc.history(h)
			if broken := judged(h.end()); !slices.Equal(broken, tc.want) {
				t.Errorf("it breaks %q, want %q", broken, tc.want)
			}
		})
	}
}

// changeNamespace changes the namespace of all Machines.
func (h *historyBuilder) changeNamespace(leaving, gone bool) {
	h.pass(time.Second)
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	if leaving {
		n.DeletionTimestamp = new(metav1.NewTime(h.now))
	}
	h.change(n, gone)
}

func TestMachinesOfDeletedNamespacesMayGo(t *testing.T) {
	for name, tc := range map[string]struct {
		history func(*historyBuilder)
		want    []string
	}{
		"its machines go, and nobody can be told": {history: func(h *historyBuilder) {
			h.changeNamespace(true, false)
			for _, m := range []string{"a", "b", "c"} {
				h.deleteMachine(m)
				h.endVM(m)
				h.pass(time.Second)
				h.change(h.machines[m], true)
			}
			h.changeNamespace(true, true)
		}},
		"a VM is left of it": {history: func(h *historyBuilder) {
			h.changeNamespace(true, false)
			for _, m := range []string{"a", "b", "c"} {
				h.deleteMachine(m)
				h.change(h.machines[m], true)
			}
			h.endVM("a")
			h.endVM("b")
			h.changeNamespace(true, true)
		}, want: []string{NoneLeft}},
		"a machine goes after it was made anew": {history: func(h *historyBuilder) {
			h.changeNamespace(true, false)
			h.changeNamespace(true, true)
			h.changeNamespace(false, false)
			h.deleteMachine("a")
		}, want: []string{Availability}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			makeThree(h)
			tc.history(h)
			if broken := judged(h.end()); !slices.Equal(broken, tc.want) {
				t.Errorf("it breaks %q, want %q", broken, tc.want)
			}
		})
	}
}
