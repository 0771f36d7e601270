package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// detachTime is how long the attacher's storage takes to detach a volume.
const detachTime = 2 * time.Second

// detachFailure is what it says of a volume that it cannot detach.
const detachFailure = "rpc error: the storage does not answer"

// attacher stands in for a CSI driver, and for the attach-detach controller of
// kube-controller-manager, which the local cluster does not run. It attaches the volumes of a
// namespace's pods to the Nodes that these are on, each to one at a time. It detaches them when no
// pod there uses them any more.
type attacher struct {
	u *user

	mu sync.Mutex
	// stuck are volumes that are not detached.
	stuck map[string]bool
	// unusedSince is since when an attachment has been seen to be of no use, by name.
	unusedSince map[string]time.Time
	// story has each attachment that there was, in the order in which they were made.
	story []*attachment
}

// attachment is one of a volume to a Node.
type attachment struct {
	volume, node string
	// detached is when the volume was detached, just before the API server was told; zero before.
	detached time.Time
}

// runAttacher begins to attach volumes; that ends with the test, and the volumes go.
func (u *user) runAttacher() *attacher {
	a := &attacher{u: u, stuck: map[string]bool{}, unusedSince: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(lookInterval)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := a.look(ctx); err != nil && ctx.Err() == nil {
				u.t.Logf("attach and detach volumes: %v", err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	u.t.Cleanup(func() {
		cancel()
		<-done
		a.clear()
	})
	return a
}

// look does what is to be done now.
func (a *attacher) look(ctx context.Context) error {
	var pods corev1.PodList
	if err := a.u.client.List(ctx, &pods, client.InNamespace(a.u.own)); err != nil {
		return err
	}
	used := map[string]string{} // the Nodes of volumes
	for i := range pods.Items {
		for _, v := range pods.Items[i].Spec.Volumes {
			if v.PersistentVolumeClaim != nil && pods.Items[i].Spec.NodeName != "" {
				used[a.u.volumeOf(v.PersistentVolumeClaim.ClaimName)] = pods.Items[i].Spec.NodeName
			}
		}
	}
	attached, err := a.attachments(ctx)
	if err != nil {
		return err
	}
	for i := range attached {
		volume := *attached[i].Spec.Source.PersistentVolumeName
		if used[volume] != attached[i].Spec.NodeName {
			err = a.detach(ctx, &attached[i])
		}
		delete(used, volume)
		if err != nil {
			return err
		}
	}
	for volume, node := range used {
		if err := a.attach(ctx, volume, node); err != nil {
			return err
		}
	}
	return nil
}

// attachments are those of the attacher.
func (a *attacher) attachments(ctx context.Context) ([]storagev1.VolumeAttachment, error) {
	var all storagev1.VolumeAttachmentList
	if err := a.u.client.List(ctx, &all); err != nil {
		return nil, err
	}
	var own []storagev1.VolumeAttachment
	for _, one := range all.Items {
		if one.Spec.Attacher == a.u.own {
			own = append(own, one)
		}
	}
	return own, nil
}

func (a *attacher) attach(ctx context.Context, volume, node string) error {
	made := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: a.u.own, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
	}
	if err := a.u.client.Create(ctx, made); err != nil {
		return err
	}
	a.mu.Lock()
	a.story = append(a.story, &attachment{volume: volume, node: node})
	a.mu.Unlock()
	made.Status.Attached = true
	return a.u.client.Status().Update(ctx, made)
}

// detach begins to detach a volume, and ends that when its time is over. A stuck one gets an error.
func (a *attacher) detach(ctx context.Context, v *storagev1.VolumeAttachment) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	volume, now := *v.Spec.Source.PersistentVolumeName, time.Now()
	if a.unusedSince[v.Name].IsZero() {
		a.unusedSince[v.Name] = now
	}
	switch {
	case now.Sub(a.unusedSince[v.Name]) < detachTime:
		return nil
	case a.stuck[volume] && v.Status.DetachError != nil:
		return nil
	case a.stuck[volume]:
		v.Status.DetachError = &storagev1.VolumeError{Time: metav1.Now(), Message: detachFailure}
		return a.u.client.Status().Update(ctx, v)
	}
	delete(a.unusedSince, v.Name)
	for _, one := range a.story {
		if one.volume == volume && one.node == v.Spec.NodeName && one.detached.IsZero() {
			one.detached = now
		}
	}
	return a.u.client.Delete(ctx, v)
}

// stick has a volume be detached no more.
func (a *attacher) stick(volume string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stuck[volume] = true
}

// told is the story so far.
func (a *attacher) told() []attachment {
	a.mu.Lock()
	defer a.mu.Unlock()
	story := make([]attachment, 0, len(a.story))
	for _, one := range a.story {
		story = append(story, *one)
	}
	return story
}

// awaitAttached waits until these volumes are attached and in use. It returns their Nodes.
func (a *attacher) awaitAttached(volumes ...string) map[string]string {
	a.u.t.Helper()
	var nodes map[string]string
	eventually(a.u.t, "the volumes to be attached", func(ctx context.Context) error {
		attached, err := a.attachments(ctx)
		nodes = map[string]string{}
		for _, one := range attached {
			if one.Status.Attached && a.unused(one.Name).IsZero() {
				nodes[*one.Spec.Source.PersistentVolumeName] = one.Spec.NodeName
			}
		}
		for _, volume := range volumes {
			if nodes[volume] == "" {
				return fmt.Errorf("attached are %v, %w", nodes, err)
			}
		}
		return err
	})
	return nodes
}

// unused is since when an attachment has been of no use.
func (a *attacher) unused(name string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unusedSince[name]
}

// clear removes what is left of the volumes. Nobody else does: the finalizers that protect claims
// and volumes are there, and the controllers that take them away are not.
func (a *attacher) clear() {
	ctx := context.Background()
	left, err := a.attachments(ctx)
	for i := range left {
		err = client.IgnoreNotFound(a.u.client.Delete(ctx, &left[i]))
	}
	if err != nil {
		a.u.t.Errorf("delete VolumeAttachments: %v", err)
	}
	for _, kind := range []string{"persistentvolumeclaims", "persistentvolumes"} {
		names, err := a.u.try(nil, "get", kind, "-l", "user="+a.u.own, "-o", "name")
		for name := range strings.FieldsSeq(names) {
			if err == nil {
				_, err = a.u.try(nil, "patch", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
			}
			if err == nil {
				_, err = a.u.try(nil, "delete", name)
			}
		}
		if err != nil {
			a.u.t.Errorf("delete %s: %v", names, err)
		}
	}
}

// volumeOf is the PersistentVolume of a claim.
func (u *user) volumeOf(claim string) string { return u.own + "-" + claim }

// claim renders a claim and its volume, bound to each other as by the controller that the local
// cluster does not run.
func (u *user) claim(name string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata: {name: %[3]s, labels: {user: %[1]s}}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  claimRef: {namespace: %[1]s, name: %[2]s}
  hostPath: {path: /nowhere}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[2]s, labels: {user: %[1]s}, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec:
  resources: {requests: {storage: 1Gi}}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  volumeName: %[3]s
---
`, u.own, name, u.volumeOf(name))
}
