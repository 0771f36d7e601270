package judge

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// detachTimeout is that of Machines that say nothing of it.
const detachTimeout = 10 * time.Minute

// usesVolume has a pod use a claim that has its name.
func usesVolume(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.Name},
	}}}
}

// attach runs a pod with a volume on the Node of a Machine, which has its name.
func (h *historyBuilder) attach(machine, pod string, edit ...func(*corev1.Pod)) {
	h.putOnNode(machine, "other-"+pod)
	h.changePod(machine, "other-"+pod, func(*corev1.Pod) {}, true)
	h.changePod(machine, pod, func(p *corev1.Pod) {
		usesVolume(p)
		for _, e := range edit {
			e(p)
		}
	}, false)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: pod}}
	claim.Spec.VolumeName = "pv-" + pod
	h.change(claim, false)
	h.changeAttachment(machine, pod, false)
}

func (h *historyBuilder) changeAttachment(node, pod string, gone bool) {
	h.pass(time.Second)
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: pod, UID: types.UID(node + pod)}}
	a.Spec.NodeName, a.Spec.Source.PersistentVolumeName = node, new("pv-"+pod)
	h.change(a, gone)
}

// drain has a user delete a Machine, and its pod end as soon as it is evicted.
func (h *historyBuilder) drain(machine, pod string) {
	h.noteUserDeletes(machine)
	h.deleteMachine(machine)
	h.evict(machine, pod)
	h.changePod(machine, pod, h.terminate, true)
}

// say has core write a condition of a Machine after a while.
func (h *historyBuilder) say(machine, condition, reason string, while time.Duration) {
	at := h.now.Add(while)
	h.editMachine(machine, func(m *clusterv1alpha1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: condition, Reason: reason, Status: metav1.ConditionFalse})
	})
	h.moveLastChangeTo(at)
}

// timeOut has core write after a while that a Machine waits for its volumes no more.
func (h *historyBuilder) timeOut(machine string, while time.Duration) {
	h.say(machine, clusterv1alpha1.ConditionVolumesDetached, clusterv1alpha1.ReasonVolumeDetachTimedOut, while)
}

func (h *historyBuilder) setDetachTimeout(machine string, timeout time.Duration) {
	h.editMachine(machine, func(m *clusterv1alpha1.Machine) { m.Spec.NodeVolumeDetachTimeout = &metav1.Duration{Duration: timeout} })
}

// judgeVolumeHistories has three Machines serve, and expects the same of each history.
func judgeVolumeHistories(t *testing.T, histories map[string]func(*historyBuilder), want []string) {
	t.Helper()
	for name, history := range histories {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			makeThree(h)
			history(h)
			if broken := judged(h.end()); !slices.Equal(broken, want) {
				t.Errorf("it breaks %q, want %q", broken, want)
			}
		})
	}
}

func TestVolumesThatMayBeLost(t *testing.T) {
	judgeVolumeHistories(t, map[string]func(*historyBuilder){
		"the volume is detached before the VM goes": func(h *historyBuilder) {
			h.attach("a", "p")
			h.drain("a", "p")
			h.changeAttachment("a", "p", true)
			h.deleteVM("a", time.Second)
		},
		"that it is detached is seen a moment later": func(h *historyBuilder) {
			h.attach("a", "p")
			h.drain("a", "p")
			h.deleteVM("a", time.Minute)
			h.changeAttachment("a", "p", true)
		},
		"that it is detached is seen when etcd is back": func(h *historyBuilder) {
			h.attach("a", "p")
			h.drain("a", "p")
			h.deleteVM("a", time.Minute)
			h.hinder("etcd", time.Minute)
			h.pass(time.Minute)
			h.changeAttachment("a", "p", true)
		},
		"the time for it is over": func(h *historyBuilder) {
			h.attach("a", "p")
			h.drain("a", "p")
			h.timeOut("a", detachTimeout)
			h.deleteVM("a", time.Second)
		},
		"the time that the Machine gives it is over": func(h *historyBuilder) {
			h.attach("a", "p")
			h.setDetachTimeout("a", time.Minute)
			h.drain("a", "p")
			h.timeOut("a", time.Minute)
			h.deleteVM("a", time.Second)
		},
		"the time begins when the drain has timed out, whenever pods end": func(h *historyBuilder) {
			h.attach("a", "p")
			h.noteUserDeletes("a")
			h.deleteMachine("a")
			h.evict("a", "p")
			h.say("a", clusterv1alpha1.ConditionDrained, clusterv1alpha1.ReasonDrainTimedOut, time.Second)
			h.pass(detachTimeout / 2)
			h.changePod("a", "p", h.terminate, true)
			h.timeOut("a", detachTimeout/2)
			h.deleteVM("a", time.Second)
		},
		"a user lets it go with its volumes": func(h *historyBuilder) {
			h.attach("a", "p")
			h.editMachine("a", func(m *clusterv1alpha1.Machine) {
				m.Annotations = map[string]string{clusterv1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation: ""}
			})
			h.drain("a", "p")
			h.deleteVM("a", time.Second)
		},
		"somebody else has changed the VM": func(h *historyBuilder) {
			h.attach("a", "p")
			h.Acts = append(h.Acts, Act{At: h.now, Until: h.now, Do: Changed, Target: "a"})
			h.drain("a", "p")
			h.deleteVM("a", time.Second)
		},
		"somebody else has deleted the Node": func(h *historyBuilder) {
			h.attach("a", "p")
			h.change(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, true)
			h.drain("a", "p")
			h.deleteVM("a", time.Second)
		},
		"the Machine is forgotten": func(h *historyBuilder) {
			h.attach("a", "p")
			h.drain("a", "p")
			h.editMachine("a", func(m *clusterv1alpha1.Machine) {
				m.Annotations = map[string]string{clusterv1alpha1.ForgetAnnotation: *m.Spec.MachineUID}
			})
			h.deleteVM("a", time.Second)
		},
		"the Machine has no Node": func(h *historyBuilder) {
			h.changeAttachment("a", "p", false)
			h.noteUserDeletes("a")
			h.deleteMachine("a")
			h.deleteVM("a", time.Second)
		},
		"it is attached when the deletion has begun": func(h *historyBuilder) {
			h.attach("a", "p")
			h.changeAttachment("a", "p", true)
			h.drain("a", "p")
			h.changeAttachment("a", "late", false)
			h.deleteVM("a", time.Minute)
		},
		"a pod that stays uses it": func(h *historyBuilder) {
			h.attach("a", "p", func(p *corev1.Pod) {
				p.Labels = map[string]string{clusterv1alpha1.DrainLabel: clusterv1alpha1.DrainSkip}
			})
			h.deleteMachineAndVM("a", time.Minute)
		},
		"a pod that was to stay is gone a moment before the VM": func(h *historyBuilder) {
			h.attach("a", "p", func(p *corev1.Pod) {
				p.Labels = map[string]string{clusterv1alpha1.DrainLabel: clusterv1alpha1.DrainSkip}
			})
			h.noteUserDeletes("a")
			h.deleteMachine("a")
			h.changePod("a", "p", func(*corev1.Pod) {}, true)
			h.deleteVM("a", time.Second)
		},
		"it is attached to another Node": func(h *historyBuilder) {
			h.attach("b", "p")
			h.attach("a", "q")
			h.changeAttachment("a", "q", true)
			h.drain("a", "q")
			h.deleteVM("a", time.Minute)
		},
	}, nil)
}

func TestVolumesThatMayNotBeLost(t *testing.T) {
	judgeVolumeHistories(t, map[string]func(*historyBuilder){
		"the VM goes with it": func(h *historyBuilder) {
			h.attach("a", "p")
			h.drain("a", "p")
			h.deleteVM("a", time.Minute)
		},
		"it is detached when the VM is gone": func(h *historyBuilder) {
			h.attach("a", "p")
			h.drain("a", "p")
			h.deleteVM("a", time.Second)
			h.pass(3 * time.Second)
			h.changeAttachment("a", "p", true)
		},
		"the VM goes with one of two": func(h *historyBuilder) {
			h.attach("a", "p")
			h.attach("a", "q")
			h.drain("a", "p")
			h.changeAttachment("a", "p", true)
			h.evict("a", "q")
			h.changePod("a", "q", h.terminate, true)
			h.deleteVM("a", time.Minute)
		},
		"the VM goes while its Machine is to stay": func(h *historyBuilder) {
			h.attach("a", "p")
			h.changePod("a", "p", h.terminate, true)
			h.deleteVM("a", time.Minute)
		},
		"the drain has timed out, and its volumes have not": func(h *historyBuilder) {
			h.attach("a", "p")
			h.noteUserDeletes("a")
			h.deleteMachine("a")
			h.evict("a", "p")
			h.say("a", clusterv1alpha1.ConditionDrained, clusterv1alpha1.ReasonDrainTimedOut, drainTimeout)
			h.deleteVM("a", time.Second)
		},
		"their time is called over before it is": func(h *historyBuilder) {
			h.attach("a", "p")
			h.drain("a", "p")
			h.timeOut("a", detachTimeout/2)
			h.deleteVM("a", time.Second)
		},
		"their time begins when the deletion does": func(h *historyBuilder) {
			h.attach("a", "p")
			h.noteUserDeletes("a")
			h.deleteMachine("a")
			h.evict("a", "p")
			h.pass(detachTimeout / 2)
			h.changePod("a", "p", h.terminate, true)
			h.timeOut("a", detachTimeout/2)
			h.deleteVM("a", time.Second)
		},
		"their time is called over, and is none": func(h *historyBuilder) {
			h.attach("a", "p")
			h.setDetachTimeout("a", 0)
			h.drain("a", "p")
			h.timeOut("a", detachTimeout)
			h.deleteVM("a", time.Second)
		},
		"that their time is over is written when the VM is gone": func(h *historyBuilder) {
			h.attach("a", "p")
			h.drain("a", "p")
			h.deleteVM("a", detachTimeout)
			h.timeOut("a", time.Minute)
		},
		"another uid is to be forgotten": func(h *historyBuilder) {
			h.attach("a", "p")
			h.drain("a", "p")
			h.editMachine("a", func(m *clusterv1alpha1.Machine) {
				m.Annotations = map[string]string{clusterv1alpha1.ForgetAnnotation: "another"}
			})
			h.deleteVM("a", time.Second)
		},
	}, []string{Volumes})
}

// Volumes that were judged are counted: who reads a summary sees whether there were any.
func TestJudgedVolumesAreCounted(t *testing.T) {
	h := newHistory()
	makeThree(h)
	h.attach("a", "p")
	h.drain("a", "p")
	h.changeAttachment("a", "p", true)
	h.deleteVM("a", time.Second)
	h.attach("b", "q")
	h.attach("b", "r")
	h.drain("b", "q")
	h.drain("b", "r")
	h.timeOut("b", detachTimeout)
	h.deleteVM("b", time.Second)
	j := New(Options{
		Core: manager, ClusterUID: cluster, Foreign: []string{foreignThing}, Resources: oneVM, Patience: 2 * time.Second, DetachTimeout: detachTimeout,
	})
	broken := j.Judge(h.end())
	if summary := j.Summary(); len(broken) > 0 || !strings.HasSuffix(summary, "1 volumes detached before their VMs went (2 timed out)") {
		t.Errorf("it breaks %v, and judged %s", broken, summary)
	}
}
