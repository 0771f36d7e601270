package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// attach attaches a volume to the machine's Node, as the attach-detach controller does.
func (b *bench) attach(m *clusterv1alpha1.Machine, volume string) *storagev1.VolumeAttachment {
	b.Helper()
	a := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name + "-" + volume},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example.com", NodeName: m.Name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
	}
	b.check(server.user.Create(b.Context(), a))
	b.Cleanup(func() { _ = server.user.Delete(context.Background(), a) }) // The test's own context has ended by then.
	return a
}

// TestLIFE9_TheVMStaysUntilItsVolumesAreDetached: the condition names them, and a process that
// starts meanwhile goes on to wait.
func TestLIFE9_TheVMStaysUntilItsVolumesAreDetached(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	stop := b.startCore()
	m := b.awaitPhase(b.newMachine("a"), clusterv1alpha1.MachinePhaseProvisioned)
	b.newNode(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	first, second := b.attach(m, "pv-1"), b.attach(m, "pv-2")
	b.remove(m)
	c := b.awaitReason(m, clusterv1alpha1.ConditionVolumesDetached, clusterv1alpha1.ReasonWaitingForVolumes)
	if want := "Waiting for volumes to be detached from Node " + m.Name + ": pv-1; pv-2."; c.Message != want {
		t.Errorf("message %q, want %q", c.Message, want)
	}
	stop()
	b.check(server.user.Delete(t.Context(), first))
	b.startCore()
	b.await("the new process to see that one is left", func() (bool, any) {
		c := b.awaitReason(m, clusterv1alpha1.ConditionVolumesDetached, clusterv1alpha1.ReasonWaitingForVolumes)
		return strings.HasSuffix(c.Message, ": pv-2."), c.Message
	})
	if _, vms := b.cloud.count(); vms != 1 {
		t.Error("the VM went with a volume")
	}
	b.check(server.user.Delete(t.Context(), second))
	b.awaitGone(m)
	if _, vms := b.cloud.count(); vms != 0 {
		t.Errorf("%d VMs left", vms)
	}
}

// TestLIFE9_AVolumeThatIsNotDetached: the VM goes when the time is over, and an Event names what it
// goes with.
func TestLIFE9_AVolumeThatIsNotDetached(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a", func(m *clusterv1alpha1.Machine) {
		m.Spec.NodeVolumeDetachTimeout = &metav1.Duration{Duration: 3 * time.Second}
	}), clusterv1alpha1.MachinePhaseProvisioned)
	b.newNode(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.attach(m, "pv-1")
	b.remove(m)
	b.awaitGone(m)
	b.await("the Event", func() (bool, any) {
		events := b.events(m)
		return slices.Contains(events, clusterv1alpha1.ReasonVolumeDetachTimedOut), events
	})
}

// bound makes a claim that is bound to a volume, in the namespace of the machine's pods.
func (b *bench) bound(claim, volume string) {
	b.Helper()
	b.check(server.user.Create(b.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: claim},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: volume, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}))
}

// withClaim has a pod use a claim.
func withClaim(claim string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
	}
}

// evicted says whether a pod is terminating.
func (b *bench) evicted(pod *corev1.Pod) bool {
	b.Helper()
	b.check(server.user.Get(b.Context(), client.ObjectKeyFromObject(pod), pod))
	return !pod.DeletionTimestamp.IsZero()
}

// annotate sets an annotation on a machine.
func (b *bench) annotate(m *clusterv1alpha1.Machine, key, value string) {
	b.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value))
	b.check(server.user.Patch(b.Context(), m, patch))
}

// TestLIFE10_APodWithAVolumeWaitsForTheOneBefore: the second is evicted once the first is gone and
// its volume is detached, and the condition says what it waits for.
func TestLIFE10_APodWithAVolumeWaitsForTheOneBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m, plain, budget := b.runningWithPod(func(m *clusterv1alpha1.Machine) {
		m.Annotations = map[string]string{clusterv1alpha1.DrainPodsWithVolumesAnnotation: clusterv1alpha1.DrainOneAtATime}
	})
	b.check(server.user.Delete(t.Context(), budget))
	b.bound("a", "pv-a-"+b.namespace)
	b.bound("b", "pv-b-"+b.namespace)
	first, second := b.newPod(m, "stored-1", withClaim("a")), b.newPod(m, "stored-2", withClaim("b"))
	volume, other := b.attach(m, "pv-a-"+b.namespace), b.attach(m, "pv-b-"+b.namespace)
	says := func(next string) {
		b.Helper()
		b.await("the drain to say "+next, func() (bool, any) {
			c := b.awaitReason(m, clusterv1alpha1.ConditionDrained, clusterv1alpha1.ReasonDraining)
			return strings.Contains(c.Message, "the next one waits for "+next), c.Message
		})
		if b.evicted(second) {
			t.Errorf("%s is evicted before its turn", second.Name)
		}
	}
	b.remove(m)
	b.await("the eviction of the first, and of the one without a volume", func() (bool, any) {
		return b.evicted(first) && b.evicted(plain), first.Status
	})
	b.check(server.user.Delete(t.Context(), plain, client.GracePeriodSeconds(0)))
	says("pods to end: " + b.namespace + "/stored-1")
	b.check(server.user.Delete(t.Context(), first, client.GracePeriodSeconds(0)))
	says("volumes to be detached: pv-a-" + b.namespace)
	b.check(server.user.Delete(t.Context(), volume))
	b.await("the eviction of the second", func() (bool, any) { return b.evicted(second), second.Status })
	b.check(server.user.Delete(t.Context(), second, client.GracePeriodSeconds(0)))
	b.check(server.user.Delete(t.Context(), other))
	b.awaitGone(m)
}

// TestLIFE10_TheDrainIsSkippedInTheMiddle: the pod that a budget keeps goes with the VM, and nobody
// waits for its volume.
func TestLIFE10_TheDrainIsSkippedInTheMiddle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m, pod, _ := b.runningWithPod()
	b.bound("a", "pv-a-"+b.namespace)
	stored := b.newPod(m, "stored-1", withClaim("a"))
	b.attach(m, "pv-a-"+b.namespace)
	b.remove(m)
	b.awaitReason(m, clusterv1alpha1.ConditionDrained, clusterv1alpha1.ReasonBlockedByPodDisruptionBudget)
	b.annotate(m, clusterv1alpha1.ExcludeNodeDrainingAnnotation, "")
	b.awaitGone(m)
	if b.evicted(pod) || b.evicted(stored) {
		t.Error("a pod is evicted that its budget keeps")
	}
	b.await("the Event", func() (bool, any) {
		events := b.events(m)
		return slices.Contains(events, clusterv1alpha1.ReasonDrainSkipped), events
	})
	if events := b.events(m); slices.Contains(events, clusterv1alpha1.ReasonVolumeDetachTimedOut) {
		t.Errorf("events %v", events)
	}
	for _, p := range []*corev1.Pod{pod, stored} {
		b.check(server.user.Delete(t.Context(), p, client.GracePeriodSeconds(0)))
	}
}

// TestLIFE10_TheWaitForVolumesIsSkippedInTheMiddle: the VM goes with them, and an Event names them.
func TestLIFE10_TheWaitForVolumesIsSkippedInTheMiddle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a", func(m *clusterv1alpha1.Machine) {
		m.Spec.NodeVolumeDetachTimeout = &metav1.Duration{}
	}), clusterv1alpha1.MachinePhaseProvisioned)
	b.newNode(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.attach(m, "pv-1")
	b.remove(m)
	b.awaitReason(m, clusterv1alpha1.ConditionVolumesDetached, clusterv1alpha1.ReasonWaitingForVolumes)
	b.annotate(m, clusterv1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation, "")
	b.awaitGone(m)
	b.await("the Event", func() (bool, any) {
		events := b.events(m)
		return slices.Contains(events, clusterv1alpha1.ReasonVolumeWaitSkipped), events
	})
}

// TestLIFE9_AttachmentsWakeTheMachineThatWaits shows whom an attachment wakes.
func TestLIFE9_AttachmentsWakeTheMachineThatWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deleted, annotated, there, wakes bool
	}{
		"a machine on its way out":              {deleted: true, annotated: true, there: true, wakes: true},
		"not one that runs":                     {annotated: true, there: true},
		"nor one to which no Node is annotated": {deleted: true, there: true},
		"nor one whose Node is gone":            {deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			m := b.newMachine("a")
			if c.there {
				b.newNode(m, func(n *corev1.Node) {
					if c.annotated {
						n.Annotations = map[string]string{clusterv1alpha1.NodeMachineAnnotation: keyOf(m)}
					}
				})
			}
			if c.deleted {
				b.remove(m)
			}
			cached := b.nodeCache()
			nodes := nodeClient{Client: cached, machines: machineFinder{cache: cached}}
			a := &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{NodeName: m.Name}}
			woken := nodes.machinesOfAttachment(t.Context(), a)
			if is := len(woken) == 1 && woken[0].NamespacedName == client.ObjectKeyFromObject(m); is != c.wakes || len(woken) > 1 {
				t.Errorf("wakes %v", woken)
			}
		})
	}
}

// TestLIFE9_WhichChangesOfAttachmentsWake: that one is made, or attached, is no news to a machine
// on its way out.
func TestLIFE9_WhichChangesOfAttachmentsWake(t *testing.T) {
	type attachment = storagev1.VolumeAttachment
	passes, was := attachmentChanged(), &attachment{}
	failed := &attachment{Status: storagev1.VolumeAttachmentStatus{DetachError: &storagev1.VolumeError{Message: "no"}}}
	if passes.Create(event.TypedCreateEvent[*attachment]{Object: was}) {
		t.Error("one that is made wakes")
	}
	if passes.Update(event.TypedUpdateEvent[*attachment]{ObjectOld: was, ObjectNew: &attachment{Status: storagev1.VolumeAttachmentStatus{Attached: true}}}) {
		t.Error("one that is attached wakes")
	}
	if !passes.Update(event.TypedUpdateEvent[*attachment]{ObjectOld: was, ObjectNew: failed}) {
		t.Error("one that cannot be detached does not wake")
	}
	if !passes.Delete(event.TypedDeleteEvent[*attachment]{Object: was}) {
		t.Error("one that goes does not wake")
	}
}
