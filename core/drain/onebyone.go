package drain

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// splitByClaims parts pods that use no claim from those that use some. The latter are in an order
// that stays.
func splitByClaims(pods []*corev1.Pod) (without, with []*corev1.Pod) {
	for _, pod := range pods {
		if len(claimsOf(pod)) > 0 {
			with = append(with, pod)
			continue
		}
		without = append(without, pod)
	}
	slices.SortFunc(with, func(a, b *corev1.Pod) int { return cmp.Compare(key(a), key(b)) })
	return without, with
}

// evictNext evicts one of these pods, which use claims: the first that may be evicted now. It
// evicts none while another such pod of the Node is terminating, or while a volume is attached that
// no pod of the Node uses any more. What is not evicted is added to progress, with what the next
// one waits for. all are the pods of the Node.
func (d *Drainer) evictNext(ctx context.Context, node string, all []corev1.Pod, pods []*corev1.Pod, progress *Progress) error {
	if len(pods) == 0 {
		return nil
	}
	waitsFor, err := d.nextWaitsFor(ctx, node, all)
	if err != nil {
		return err
	}
	for len(pods) > 0 && waitsFor == "" {
		pod := pods[0]
		came, why, err := d.evict(ctx, pod)
		if err != nil {
			return err
		}
		progress.add(pod, came, why)
		if came == evicted || came == gone {
			waitsFor = "pods to end: " + key(pod)
		}
		pods = pods[1:]
	}
	for _, pod := range pods {
		progress.Later = append(progress.Later, key(pod))
	}
	if len(pods) > 0 {
		progress.Next = waitsFor
	}
	return nil
}

// nextWaitsFor says, in stable words, what has to end before the next pod with volumes is evicted;
// empty where it can be now. pods are all of the Node.
func (d *Drainer) nextWaitsFor(ctx context.Context, node string, pods []corev1.Pod) (string, error) {
	var leaving []string
	for i := range pods {
		if pod := &pods[i]; !isNotLeaving(pod) && len(claimsOf(pod)) > 0 {
			leaving = append(leaving, key(pod))
		}
	}
	if len(leaving) > 0 {
		return "pods to end: " + list(leaving, ", "), nil
	}
	attachments, err := d.attachments(ctx, node)
	if err != nil || len(attachments) == 0 {
		return "", err
	}
	used, err := d.volumesOf(ctx, claimsOnlyOf(pods, isNotLeaving))
	if err != nil {
		return "", err
	}
	if volumes := describeAttachments(attachments, used, false); volumes != "" {
		return "volumes to be detached: " + volumes, nil
	}
	return "", nil
}
