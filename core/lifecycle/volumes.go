package lifecycle

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// detachRecheck is when to look again for volumes. That one is detached wakes the machine.
const detachRecheck = 15 * time.Second

// decideDetach: no volume of a drained pod is attached to the Node, or none is waited for any more.
// A volume that is attached when its VM goes is kept from the next pod that wants it, for minutes.
func decideDetach(s State, d decision) (decision, bool) {
	if s.Volumes != nil && *s.Volumes == (Volumes{}) {
		d.Memory.Detached = true
	}
	switch {
	case isDetachRecorded(s.Machine.Status):
		return d, false
	case d.Memory.Detached:
		d.detached = describeDetached(s)
		return d, false
	case isDetachMoot(s, d):
		d.detachMoot = true
		return d, false
	case s.Volumes == nil:
		return d.act(CheckVolumes)
	}
	return awaitDetach(s, d)
}

// isDetachRecorded says whether it is written down of a machine on its way out that no volume is
// waited for any more.
func isDetachRecorded(s Status) bool {
	c := s.Condition(clusterv1alpha1.ConditionVolumesDetached)
	over := c.Status == metav1.ConditionTrue || c.Reason == clusterv1alpha1.ReasonVolumeDetachTimedOut || c.Reason == clusterv1alpha1.ReasonVolumeWaitSkipped
	return over && s.Phase == clusterv1alpha1.MachinePhaseDeleting
}

// isDetachMoot says whether volumes are no reason to wait: the machine has no Node, nobody is left
// there who could unmount them, or the machine goes without its VM.
func isDetachMoot(s State, d decision) bool {
	drained := cmp.Or(d.drained, s.Machine.Status.Condition(clusterv1alpha1.ConditionDrained))
	unreachable := drained.Reason == clusterv1alpha1.ReasonNodeUnreachable || d.Memory.Gone || isInstanceGone(s)
	return s.Node.Match != NodeFound || unreachable || s.Machine.Forgotten
}

// awaitDetach waits until the next look. When the time is over, or an annotation asks that nothing
// is waited for, it is written down which volumes are left. That is told by an Event, too, before
// anything else is done.
func awaitDetach(s State, d decision) (decision, bool) {
	d.Memory.Wait = d.Memory.Wait.read(waitForVolumes, s.Now, s.Clock.Cluster, false)
	d.Poll, d.driverStateShown = instance.PollSettled, true
	if s.Machine.SkipsVolumes {
		d.detached = describeAttached(s, clusterv1alpha1.ReasonVolumeWaitSkipped)
		return d.waitUntil(s.Now.Add(recordedRecheck))
	}
	wait := detachRecheck
	if timeout := s.Machine.VolumeDetachTimeout; timeout > 0 {
		left := timeLeft(s.Machine.Status.Condition(clusterv1alpha1.ConditionVolumesDetached), timeout, d.Memory.Wait)
		if left <= 0 {
			d.detached = describeAttached(s, clusterv1alpha1.ReasonVolumeDetachTimedOut)
			return d.waitUntil(s.Now.Add(recordedRecheck))
		}
		wait = min(wait, left)
	}
	if s.Machine.Status.Phase == clusterv1alpha1.MachinePhaseDeleting {
		d = d.debounce("volumes", drainDebounce)
	}
	d.detached = describeAttached(s, clusterv1alpha1.ReasonWaitingForVolumes)
	return d.waitUntil(s.Now.Add(wait))
}

// describeDetached is the condition VolumesDetached once no volume is attached; the zero value
// where none was when the drain ended.
func describeDetached(s State) metav1.Condition {
	recorded := s.Machine.Status.Condition(clusterv1alpha1.ConditionVolumesDetached)
	if recorded.Type == "" && s.Memory.Wait.For != waitForVolumes {
		return metav1.Condition{}
	}
	return condition(clusterv1alpha1.ConditionVolumesDetached, metav1.ConditionTrue, clusterv1alpha1.ReasonDetached,
		"The volumes that the drained pods used are detached.")
}

// describeAttached is the condition VolumesDetached for a reason, while volumes are attached or
// nobody can tell.
func describeAttached(s State, reason string) metav1.Condition {
	message := fmt.Sprintf("Waiting for volumes to be detached from Node %s", s.Node.Name)
	switch reason {
	case clusterv1alpha1.ReasonVolumeDetachTimedOut:
		message = fmt.Sprintf("Volumes were not detached from Node %s within %s; the VM goes with those that are left", s.Node.Name, s.Machine.VolumeDetachTimeout)
	case clusterv1alpha1.ReasonVolumeWaitSkipped:
		message = fmt.Sprintf("The annotation %s lets the VM go with the volumes that are attached to Node %s",
			clusterv1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation, s.Node.Name)
	}
	if s.Volumes.Attached != "" {
		message += ": " + s.Volumes.Attached
	}
	message += "."
	if s.Volumes.Error != "" {
		message += " It cannot be told which of them belong to pods that stay on the Node: " + s.Volumes.Error
	}
	return condition(clusterv1alpha1.ConditionVolumesDetached, metav1.ConditionFalse, reason, message)
}
