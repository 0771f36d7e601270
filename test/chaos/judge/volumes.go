package judge

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// volumes are what is known of those that pods use.
type volumes struct {
	attachments map[types.UID]*attachment
	// bound are the volumes of claims, by the claims' keys.
	bound map[string]string
	// detached counts those that were detached when the VMs went that they had been attached to,
	// and timedOut those with which a VM went since the time for them was over.
	detached, timedOut int
}

// attachment is one of a volume to a Node over its life.
type attachment struct {
	volume, node string
	// made and gone are when it was first seen, and when it was seen to be gone; zero before.
	made, gone time.Time
}

func newVolumes() volumes {
	return volumes{attachments: map[types.UID]*attachment{}, bound: map[string]string{}}
}

// attachment takes in a change of an attachment.
func (v *volumes) attachment(o *storagev1.VolumeAttachment, c Change) {
	a := v.attachments[o.UID]
	if a == nil {
		a = &attachment{volume: ptr.Deref(o.Spec.Source.PersistentVolumeName, ""), node: o.Spec.NodeName, made: c.At}
		v.attachments[o.UID] = a
	}
	if c.Gone {
		a.gone = c.At
	}
}

// claimsOf are the keys of the claims that a pod uses.
func claimsOf(o *corev1.Pod) []string {
	var claims []string
	for _, v := range o.Spec.Volumes {
		if claim := v.PersistentVolumeClaim; claim != nil {
			claims = append(claims, o.Namespace+"/"+claim.ClaimName)
		}
	}
	return claims
}

// noteVolumes takes in whether it is written of a Machine on its way out that its volumes are no
// longer waited for.
func (m *machine) noteVolumes(o *clusterv1alpha1.Machine, c Change) {
	detached := meta.FindStatusCondition(o.Status.Conditions, clusterv1alpha1.ConditionVolumesDetached)
	isOver := detached != nil && detached.Reason == clusterv1alpha1.ReasonVolumeDetachTimedOut && !o.DeletionTimestamp.IsZero()
	if isOver && m.detachTimedOut.IsZero() {
		m.detachTimedOut = c.At
	}
}

// judgeVolumes: no VM is deleted while a volume of a drained pod is attached to its Node. What was
// attached too late to be known when the deletion began does not count, nor what pods use that
// stay. That pods are left when a drain has timed out is no excuse: their volumes are waited for,
// too. Nor is a Node that does not answer: no round lasts until it counts as unreachable, unless
// somebody has changed its VM. A Machine that a user lets go with its volumes is not judged.
func (d deletion) judgeVolumes() {
	if _, isLetGo := d.Annotations[clusterv1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation]; isLetGo || d.isForgotten() || d.isOutOfReach() {
		return
	}
	known, isOver := d.judge.acts.viewFrom(d.begun(), d.judge.options.Patience), d.hasDetachTimedOut()
	for _, a := range d.judge.volumes.attachments {
		if a.node != d.node || !a.made.Before(known) || d.isUsedByStaying(a, known) {
			continue
		}
		isAttached := a.gone.IsZero() || d.judge.acts.viewFrom(a.gone, d.judge.options.Patience).After(d.at)
		switch {
		case !isAttached && a.gone.After(d.begun()):
			d.judge.volumes.detached++
		case isAttached && isOver:
			d.judge.volumes.timedOut++
		case isAttached:
			d.judge.violate(Volumes, d.at, "the VM of %s was deleted while volume %s was attached to its Node %s", keyOf(d.Machine), a.volume, d.node)
		}
	}
}

// isForgotten says whether somebody let the Machine go without its VM.
func (m *machine) isForgotten() bool {
	uid, is := m.Annotations[clusterv1alpha1.ForgetAnnotation]
	return is && uid == uidOf(m.Machine)
}

// isUsedByStaying says whether a pod that stays has used the volume of an attachment on its Node
// since an instant.
func (d deletion) isUsedByStaying(a *attachment, since time.Time) bool {
	for _, p := range d.judge.pods {
		if !p.stays || p.node != a.node || !p.ended.IsZero() && p.ended.Before(since) {
			continue
		}
		if slices.ContainsFunc(p.claims, func(claim string) bool { return d.judge.volumes.bound[claim] == a.volume }) {
			return true
		}
	}
	return false
}

// hasDetachTimedOut says whether it was written, before a VM's deletion, that the time for its
// volumes is over, and whether it was. That time begins when the drain ends; 0 is for ever.
func (d deletion) hasDetachTimedOut() bool {
	written := d.detachTimedOut
	if written.IsZero() || d.judge.acts.viewFrom(written, d.judge.options.Patience).After(d.at) {
		return false
	}
	timeout := ptr.Deref(d.Spec.NodeVolumeDetachTimeout, metav1.Duration{Duration: d.judge.options.DetachTimeout}).Duration
	waited := written.Sub(d.judge.acts.viewFrom(d.drainEnd(), d.judge.options.Patience))
	return timeout > 0 && waited >= timeout-clockStep-slack
}

// drainEnd is when the last pod ended that core evicted from the Node of a Machine, as far as it
// waited for that; when the Machine's deletion began, where there is none.
func (d deletion) drainEnd() time.Time {
	end := d.begun()
	drained := meta.FindStatusCondition(d.Status.Conditions, clusterv1alpha1.ConditionDrained)
	if drained != nil && drained.Reason == clusterv1alpha1.ReasonDrainTimedOut {
		return end
	}
	for _, p := range d.judge.pods {
		if p.node == d.node && p.evicted && p.ended.After(end) && p.ended.Before(d.detachTimedOut) {
			end = p.ended
		}
	}
	return end
}
