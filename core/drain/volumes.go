package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:roleName=millwright-manager-workload,groups=storage.k8s.io,resources=volumeattachments,verbs=get;list;watch
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups="",resources=persistentvolumeclaims,verbs=get

// AttachmentIndex finds VolumeAttachments in a cache by the name of their Node.
const AttachmentIndex = "volumeattachment.node"

// NodeOfAttachment is an attachment's key in AttachmentIndex.
func NodeOfAttachment(a *storagev1.VolumeAttachment) []string { return []string{a.Spec.NodeName} }

// Attached names the volumes that are attached to a Node, in an order that stays; empty for none.
// It says of each why it could not be detached so far. Volumes that only pods use which a drain
// leaves alone do not count: they stay as long as these pods do. Where the drain was skipped, that
// holds for all pods but those that are terminating. An error says why nobody can tell of some
// volumes whether they count; these are named, too.
func (d *Drainer) Attached(ctx context.Context, node string, skipped bool) (string, error) {
	attachments, err := d.attachments(ctx, node)
	if err != nil || len(attachments) == 0 {
		return "", err
	}
	isStaying, areInlineLeaving := stays, true
	if skipped {
		isStaying, areInlineLeaving = isNotLeaving, false
	}
	var staying map[string]bool
	pods, err := d.listPods(ctx, node, &metav1.ListOptions{ResourceVersion: "0"})
	if err == nil {
		staying, err = d.volumesOf(ctx, claimsOnlyOf(pods, isStaying))
	}
	names := describeAttachments(attachments, staying, areInlineLeaving)
	if names == "" {
		return "", nil
	}
	return names, err
}

// attachments are those of a Node. They are the cache's: nobody may change them.
func (d *Drainer) attachments(ctx context.Context, node string) ([]storagev1.VolumeAttachment, error) {
	var attachments storagev1.VolumeAttachmentList
	if err := d.client.List(ctx, &attachments, client.MatchingFields{AttachmentIndex: node}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the VolumeAttachments of node %s: %w", node, err)
	}
	return attachments.Items, nil
}

// describeAttachments names the attachments but for those of volumes that stay, in an order that
// stays. Nobody can tell whose an inline volume is: these count where inline is true.
func describeAttachments(attachments []storagev1.VolumeAttachment, staying map[string]bool, inline bool) string {
	var names []string
	for i := range attachments {
		volume := attachments[i].Spec.Source.PersistentVolumeName
		if volume == nil && inline || volume != nil && !staying[*volume] {
			names = append(names, describeAttachment(&attachments[i]))
		}
	}
	return list(names, "; ")
}

// describeAttachment names an attachment by its PersistentVolume, and says why it could not be
// detached so far. An inline volume, which only a pod describes, has no PersistentVolume: its
// attachment is named by its own name.
func describeAttachment(a *storagev1.VolumeAttachment) string {
	name := "VolumeAttachment " + a.Name
	if volume := a.Spec.Source.PersistentVolumeName; volume != nil {
		name = *volume
	}
	if failed := a.Status.DetachError; failed != nil && failed.Message != "" {
		name += ": " + failed.Message
	}
	return name
}

// volumesOf returns the PersistentVolumes of claims, which are read one by one. A claim that cannot
// be read is an error, and keeps no other from being read.
func (d *Drainer) volumesOf(ctx context.Context, claims []client.ObjectKey) (map[string]bool, error) {
	var errs []error
	volumes := map[string]bool{}
	for _, key := range claims {
		var claim corev1.PersistentVolumeClaim
		if err := d.live.Get(ctx, key, &claim); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("read the PersistentVolumeClaim %s: %w", key, err))
			continue
		}
		volumes[claim.Spec.VolumeName] = true // of a claim that is gone, no volume's name
	}
	return volumes, errors.Join(errs[:min(len(errs), named)]...)
}

// claimsOnlyOf returns, in an order that stays, the claims that only pods use that stay on the
// Node.
func claimsOnlyOf(pods []corev1.Pod, isStaying func(*corev1.Pod) bool) []client.ObjectKey {
	staying, leaving := map[client.ObjectKey]bool{}, map[client.ObjectKey]bool{}
	for i := range pods {
		users := leaving
		if isStaying(&pods[i]) {
			users = staying
		}
		for _, claim := range claimsOf(&pods[i]) {
			users[claim] = true
		}
	}
	var claims []client.ObjectKey
	for claim := range staying {
		if !leaving[claim] {
			claims = append(claims, claim)
		}
	}
	slices.SortFunc(claims, func(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) })
	return claims
}

// stays says whether the drain leaves the pod, and with it its volumes, alone. A pod that has ended
// because it was deleted does not stay: its kubelet unmounts its volumes, and then it is gone.
func stays(pod *corev1.Pod) bool {
	return leftAlone(pod) && !(hasEnded(pod) && pod.DeletionTimestamp != nil)
}

// isNotLeaving says whether the pod, and with it its volumes, stays unless it is evicted.
func isNotLeaving(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil || stays(pod)
}

// claimsOf returns the claims that a pod uses, those of its generic ephemeral volumes among them.
func claimsOf(pod *corev1.Pod) []client.ObjectKey {
	var claims []client.ObjectKey
	for i := range pod.Spec.Volumes {
		switch volume := &pod.Spec.Volumes[i]; {
		case volume.PersistentVolumeClaim != nil:
			claims = append(claims, client.ObjectKey{Namespace: pod.Namespace, Name: volume.PersistentVolumeClaim.ClaimName})
		case volume.Ephemeral != nil:
			claims = append(claims, client.ObjectKey{Namespace: pod.Namespace, Name: ephemeral.VolumeClaimName(pod, volume)})
		}
	}
	return claims
}
