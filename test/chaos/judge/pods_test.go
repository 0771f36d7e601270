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

// onNode gives a Machine a Node, which has its name, and a pod there.
func (t *tale) onNode(machine, pod string) {
	t.edit(machine, func(m *clusterv1alpha1.Machine) { m.Status.NodeRef = &corev1.ObjectReference{Name: machine} })
	t.pod(machine, pod, func(*corev1.Pod) {}, false)
}

func (t *tale) pod(node, name string, edit func(*corev1.Pod), gone bool) {
	t.after(time.Second)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: name, UID: types.UID(name)}}
	p.Spec.NodeName = node
	edit(p)
	t.change(p, gone)
}

// toldToEnd tells a pod to end, and gives it podGrace.
func (t *tale) toldToEnd(p *corev1.Pod) {
	p.DeletionTimestamp = new(metav1.NewTime(t.now.Add(podGrace)))
}

func (t *tale) podWrite(user, verb, resource, pod string) {
	t.Writes = append(t.Writes, Write{At: t.now, User: user, Verb: verb, Resource: resource, Namespace: "app", Name: pod})
}

// evicted: core evicts the pod, and it has podGrace to end.
func (t *tale) evicted(node, pod string) {
	t.podWrite(manager, "create", "pods/eviction", pod)
	t.pod(node, pod, t.toldToEnd, false)
}

// leaves has a user delete a Machine, and its VM be deleted a while after that.
func (t *tale) leaves(machine string, while time.Duration) {
	t.byHand(machine)
	t.deleted(machine)
	t.after(while)
	t.Calls = append(t.Calls, &backendv1alpha1.Call{Operation: "DeleteVM", ResourceId: machine, ReceiveTime: timestamppb.New(t.now)})
}

func TestPodsThatMayBeLost(t *testing.T) {
	for name, tell := range map[string]func(*tale){
		"a pod has ended before its VM goes": func(t *tale) {
			t.onNode("a", "p")
			t.byHand("a")
			t.deleted("a")
			t.evicted("a", "p")
			t.pod("a", "p", t.toldToEnd, true)
			t.leaves("a", time.Second)
		},
		"a pod does not end in the time that it has": func(t *tale) {
			t.onNode("a", "p")
			t.evicted("a", "p")
			t.leaves("a", podGrace)
		},
		"the time for the drain is over": func(t *tale) {
			t.onNode("a", "p")
			t.leaves("a", drainTimeout)
		},
		"somebody else has stopped the VM": func(t *tale) {
			t.onNode("a", "p")
			t.Acts = append(t.Acts, Act{At: t.now, Until: t.now, Do: Changed, Target: "a"})
			t.leaves("a", time.Second)
		},
		"somebody else has deleted the Node": func(t *tale) {
			t.onNode("a", "p")
			t.change(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, true)
			t.leaves("a", time.Minute)
		},
		"a pod came after the drain had begun": func(t *tale) {
			t.onNode("a", "p")
			t.pod("a", "p", t.toldToEnd, true)
			t.byHand("a")
			t.deleted("a")
			t.pod("a", "late", func(*corev1.Pod) {}, false)
			t.leaves("a", time.Minute)
		},
		"pods of another Node": func(t *tale) {
			t.onNode("a", "p")
			t.onNode("b", "q")
			t.pod("a", "p", t.toldToEnd, true)
			t.leaves("a", time.Minute)
		},
		"a pod ends by itself": func(t *tale) {
			t.onNode("a", "p")
			t.pod("a", "p", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, false)
			t.leaves("a", time.Minute)
		},
		"others delete pods as they like": func(t *tale) {
			t.onNode("a", "p")
			t.podWrite("somebody", "delete", "pods", "p")
			t.pod("a", "p", func(*corev1.Pod) {}, true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			one := newTale()
			three(one)
			tell(one)
			if broken := judged(one.told()); len(broken) > 0 {
				t.Errorf("it breaks %q", broken)
			}
		})
	}
}

func TestPodsThatMayNotBeLost(t *testing.T) {
	for name, tell := range map[string]func(*tale){
		"the VM goes under a pod that has time left": func(t *tale) {
			t.onNode("a", "p")
			t.evicted("a", "p")
			t.leaves("a", podGrace/2)
		},
		"the VM goes under a pod that nobody told to end": func(t *tale) {
			t.onNode("a", "p")
			t.leaves("a", drainTimeout/2)
		},
		"the VM goes while its Machine is to stay": func(t *tale) {
			t.onNode("a", "p")
			t.Calls = append(t.Calls, &backendv1alpha1.Call{Operation: "DeleteVM", ResourceId: "a", ReceiveTime: timestamppb.New(t.now.Add(time.Second))})
		},
		"a pod is evicted without any time": func(t *tale) {
			t.onNode("a", "p")
			t.podWrite(manager, "create", "pods/eviction", "p")
			t.pod("a", "p", func(*corev1.Pod) {}, true)
		},
		"core deletes a pod": func(t *tale) {
			t.onNode("a", "p")
			t.podWrite(manager, "delete", "pods", "p")
			t.pod("a", "p", t.toldToEnd, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			one := newTale()
			three(one)
			tell(one)
			if broken := judged(one.told()); !slices.Equal(broken, []string{Pods}) {
				t.Errorf("it breaks %q, want %q", broken, Pods)
			}
		})
	}
}

// claim is a Machine that a user makes by hand with the providerID of another VM.
func (t *tale) claim(name string) {
	t.madeBy("old", name)
	t.machines[name].OwnerReferences = nil
}

func TestClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		tell func(*tale)
		want []string
	}{
		"a claim is made and goes again": {tell: func(t *tale) {
			t.deleted("claim")
			t.change(t.machines["claim"], true)
		}},
		"a VM is made for it": {tell: func(t *tale) { t.vm("v", "claim"); t.vmGone("v") }, want: []string{Foreign}},
		"a pod of the foreign Node is told to end": {tell: func(t *tale) {
			t.pod(foreignOne, "p", t.toldToEnd, false)
		}, want: []string{Foreign}},
		"a pod of the foreign Node stays": {tell: func(t *tale) { t.pod(foreignOne, "p", func(*corev1.Pod) {}, false) }},
	} {
		t.Run(name, func(t *testing.T) {
			one := newTale()
			three(one)
			one.claim("claim")
			tc.tell(one)
			if broken := judged(one.told()); !slices.Equal(broken, tc.want) {
				t.Errorf("it breaks %q, want %q", broken, tc.want)
			}
		})
	}
}

// namespace changes the namespace of all Machines.
func (t *tale) namespace(leaving, gone bool) {
	t.after(time.Second)
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	if leaving {
		n.DeletionTimestamp = new(metav1.NewTime(t.now))
	}
	t.change(n, gone)
}

func TestNamespacesThatGo(t *testing.T) {
	for name, tc := range map[string]struct {
		tell func(*tale)
		want []string
	}{
		"its machines go, and nobody can be told": {tell: func(t *tale) {
			t.namespace(true, false)
			for _, m := range []string{"a", "b", "c"} {
				t.deleted(m)
				t.vmGone(m)
				t.after(time.Second)
				t.change(t.machines[m], true)
			}
			t.namespace(true, true)
		}},
		"a VM is left of it": {tell: func(t *tale) {
			t.namespace(true, false)
			for _, m := range []string{"a", "b", "c"} {
				t.deleted(m)
				t.change(t.machines[m], true)
			}
			t.vmGone("a")
			t.vmGone("b")
			t.namespace(true, true)
		}, want: []string{NoneLeft}},
		"a machine goes after it was made anew": {tell: func(t *tale) {
			t.namespace(true, false)
			t.namespace(true, true)
			t.namespace(false, false)
			t.deleted("a")
		}, want: []string{Availability}},
	} {
		t.Run(name, func(t *testing.T) {
			one := newTale()
			three(one)
			tc.tell(one)
			if broken := judged(one.told()); !slices.Equal(broken, tc.want) {
				t.Errorf("it breaks %q, want %q", broken, tc.want)
			}
		})
	}
}
