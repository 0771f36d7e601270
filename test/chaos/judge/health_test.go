package judge

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

const unhealthyAfter = 6 * time.Second

// hold deletes a Machine that has a Node while an annotation with that key holds its deletion, and
// takes the annotation away after a while.
func (h *historyBuilder) hold(machine, key string, while time.Duration) {
	h.editMachine(machine, func(m *clusterv1alpha1.Machine) {
		m.Status.NodeRef, m.Annotations = &corev1.ObjectReference{Name: machine}, map[string]string{key: "owner"}
	})
	h.noteUserDeletes(machine)
	h.deleteMachine(machine)
	deleted := h.now
	h.editMachine(machine, func(m *clusterv1alpha1.Machine) { m.Annotations = nil })
	h.moveLastChangeTo(deleted.Add(while))
}

// report has the Node of a Machine say whether it is Ready.
func (h *historyBuilder) report(machine string, ready corev1.ConditionStatus) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	h.change(node, false)
}

// remediate has core say, so long after now, that a Machine is to be replaced for a health check.
func (h *historyBuilder) remediate(machine string, after time.Duration) {
	at := h.now.Add(after)
	h.editMachine(machine, func(m *clusterv1alpha1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
			Type: clusterv1alpha1.ConditionOwnerRemediated, Reason: clusterv1alpha1.ReasonWaitingForRemediation,
		})
	})
	h.moveLastChangeTo(at)
}

// onNode makes three machines that serve; one of them has a Node.
func onNode(h *historyBuilder) {
	makeThree(h)
	h.editMachine("a", func(m *clusterv1alpha1.Machine) { m.Status.NodeRef = &corev1.ObjectReference{Name: "a"} })
}

func TestHooksAndHealthChecksAreJudged(t *testing.T) {
	const preDrain, preTerminate = clusterv1alpha1.PreDrainHookAnnotationPrefix + "/x", clusterv1alpha1.PreTerminateHookAnnotationPrefix
	for name, tc := range map[string]struct {
		history func(*historyBuilder)
		want    []string
	}{
		"the VM goes when the hook is gone": {history: func(h *historyBuilder) {
			makeThree(h)
			h.hold("a", preTerminate, time.Minute)
			h.deleteVM("a", time.Second)
			h.endMachine("a")
		}},
		"the VM goes before": {func(h *historyBuilder) {
			makeThree(h)
			h.hold("a", preTerminate, time.Minute)
			h.deleteVM("a", -time.Second)
			h.endMachine("a")
		}, []string{Hooks}},
		"the VM goes before the drain may begin": {func(h *historyBuilder) {
			makeThree(h)
			h.hold("a", preDrain, time.Minute)
			h.deleteVM("a", -time.Second)
			h.endMachine("a")
		}, []string{Hooks}},
		"another annotation holds nothing": {history: func(h *historyBuilder) {
			makeThree(h)
			h.hold("a", "example.com/hook", time.Minute)
			h.deleteVM("a", -time.Second)
			h.endMachine("a")
		}},
		"a Node is sick for long enough": {history: func(h *historyBuilder) {
			onNode(h)
			h.report("a", corev1.ConditionFalse)
			h.remediate("a", unhealthyAfter)
		}},
		"it has just become well": {history: func(h *historyBuilder) {
			onNode(h)
			h.report("a", corev1.ConditionFalse)
			h.pass(unhealthyAfter)
			h.report("a", corev1.ConditionTrue)
			h.remediate("a", time.Second)
		}},
		"it is not sick for long": {func(h *historyBuilder) {
			onNode(h)
			h.report("a", corev1.ConditionFalse)
			h.remediate("a", time.Second)
		}, []string{Health}},
		"it has become well long before": {func(h *historyBuilder) {
			onNode(h)
			h.report("a", corev1.ConditionFalse)
			h.pass(unhealthyAfter)
			h.report("a", corev1.ConditionTrue)
			h.remediate("a", 3*time.Second)
		}, []string{Health}},
		"it was never sick": {func(h *historyBuilder) {
			onNode(h)
			h.report("a", corev1.ConditionTrue)
			h.remediate("a", time.Hour)
		}, []string{Health}},
		"one that was sick goes after it has become well": {history: func(h *historyBuilder) {
			onNode(h)
			h.report("a", corev1.ConditionFalse)
			h.remediate("a", unhealthyAfter)
			h.deleteMachine("a")
			h.endMachine("a")
		}},
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

// deleteOneReadyForAMinute has core delete the one machine of a deployment that wants it Ready for
// so many seconds.
func deleteOneReadyForAMinute(h *historyBuilder, minReadySeconds int32) {
	h.setDeployment(1, 1, 0)
	h.md.Spec.MinReadySeconds = minReadySeconds
	h.makeMachine("a")
	h.deleteMachine("a")
}
