package attacher

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DetachTime is how long the storage takes to detach a volume, unless [Attacher.Slow] says
// otherwise.
const DetachTime = 2 * time.Second

// DetachFailure is what is said of a volume that cannot be detached.
const DetachFailure = "rpc error: the storage does not answer"

// lookInterval is how often the attacher looks at the pods.
const lookInterval = 100 * time.Millisecond

// Attacher attaches the volumes of a namespace's pods to the Nodes that these are on, each to one
// at a time. It detaches them when no pod there uses them any more. It is safe for concurrent use.
type Attacher struct {
	client    client.Client
	namespace string

	mu sync.Mutex
	// slow is how long volumes take to be detached; stuck are those that are not detached.
	slow  map[string]time.Duration
	stuck map[string]bool
	// unusedSince is since when an attachment has been seen to be of no use, by name.
	unusedSince map[string]time.Time
	// story has each attachment that there was, in the order in which they were made.
	story []*Attachment
}

// Attachment is one of a volume to a Node.
type Attachment struct {
	Volume, Node string
	// Detached is when the volume was detached, just before the API server was told; zero before.
	Detached time.Time
}

// New returns an attacher for the pods of a namespace, whose name it has as well. The client's
// scheme has storage.k8s.io/v1.
func New(c client.Client, namespace string) *Attacher {
	return &Attacher{
		client: c, namespace: namespace,
		slow: map[string]time.Duration{}, stuck: map[string]bool{}, unusedSince: map[string]time.Time{},
	}
}

// VolumeOf is the PersistentVolume of a claim. Its users create it, and the claim, if anybody reads
// them.
func VolumeOf(namespace, claim string) string { return namespace + "-" + claim }

// Run attaches and detaches until ctx ends. It tells failed of each error, and goes on.
func (a *Attacher) Run(ctx context.Context, failed func(error)) {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := a.look(ctx); err != nil && ctx.Err() == nil {
			failed(fmt.Errorf("attach and detach volumes: %w", err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// look does what is to be done now.
func (a *Attacher) look(ctx context.Context) error {
	used, err := a.usedVolumes(ctx)
	if err != nil {
		return err
	}
	attached, err := a.Attachments(ctx)
	if err != nil {
		return err
	}
	for i := range attached {
		volume := *attached[i].Spec.Source.PersistentVolumeName
		if used[volume] == attached[i].Spec.NodeName {
			err = a.keep(ctx, &attached[i])
		} else {
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

// usedVolumes are the Nodes of the volumes that pods use.
func (a *Attacher) usedVolumes(ctx context.Context) (map[string]string, error) {
	var pods corev1.PodList
	if err := a.client.List(ctx, &pods, client.InNamespace(a.namespace)); err != nil {
		return nil, err
	}
	used := map[string]string{}
	for i := range pods.Items {
		for _, v := range pods.Items[i].Spec.Volumes {
			if v.PersistentVolumeClaim != nil && pods.Items[i].Spec.NodeName != "" {
				used[VolumeOf(a.namespace, v.PersistentVolumeClaim.ClaimName)] = pods.Items[i].Spec.NodeName
			}
		}
	}
	return used, nil
}

// Attachments are those of the attacher.
func (a *Attacher) Attachments(ctx context.Context) ([]storagev1.VolumeAttachment, error) {
	var all storagev1.VolumeAttachmentList
	if err := a.client.List(ctx, &all); err != nil {
		return nil, err
	}
	var own []storagev1.VolumeAttachment
	for _, one := range all.Items {
		if one.Spec.Attacher == a.namespace {
			own = append(own, one)
		}
	}
	return own, nil
}

func (a *Attacher) attach(ctx context.Context, volume, node string) error {
	made := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: a.namespace, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
	}
	if err := a.client.Create(ctx, made); err != nil {
		return err
	}
	a.mu.Lock()
	a.story = append(a.story, &Attachment{Volume: volume, Node: node})
	a.mu.Unlock()
	return a.keep(ctx, made)
}

// keep leaves a volume attached, and says that it is.
func (a *Attacher) keep(ctx context.Context, v *storagev1.VolumeAttachment) error {
	a.mu.Lock()
	delete(a.unusedSince, v.Name)
	a.mu.Unlock()
	if v.Status.Attached {
		return nil
	}
	v.Status.Attached = true
	return a.client.Status().Update(ctx, v)
}

// detach begins to detach a volume, and ends that when its time is over. A stuck one gets an error.
func (a *Attacher) detach(ctx context.Context, v *storagev1.VolumeAttachment) error {
	isDue, isStuck := a.progress(v, time.Now())
	switch {
	case !isDue || isStuck && v.Status.DetachError != nil:
		return nil
	case isStuck:
		v.Status.DetachError = &storagev1.VolumeError{Time: metav1.Now(), Message: DetachFailure}
		return a.client.Status().Update(ctx, v)
	}
	return client.IgnoreNotFound(a.client.Delete(ctx, v))
}

// progress says how far the detaching of a volume is: whether its time is over, and whether it is
// stuck. One that is detached enters the story as such.
func (a *Attacher) progress(v *storagev1.VolumeAttachment, now time.Time) (isDue, isStuck bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	volume := *v.Spec.Source.PersistentVolumeName
	if a.unusedSince[v.Name].IsZero() {
		a.unusedSince[v.Name] = now
	}
	takes, isSlow := a.slow[volume]
	if !isSlow {
		takes = DetachTime
	}
	isDue, isStuck = now.Sub(a.unusedSince[v.Name]) >= takes, a.stuck[volume]
	if !isDue || isStuck {
		return isDue, isStuck
	}
	for _, one := range a.story {
		if one.Volume == volume && one.Node == v.Spec.NodeName && one.Detached.IsZero() {
			one.Detached = now
		}
	}
	return isDue, isStuck
}

// Slow has a volume take so long to be detached.
func (a *Attacher) Slow(volume string, takes time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slow[volume] = takes
}

// Stick has a volume be detached no more.
func (a *Attacher) Stick(volume string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stuck[volume] = true
}

// Story returns the attachments that there were so far.
func (a *Attacher) Story() []Attachment {
	a.mu.Lock()
	defer a.mu.Unlock()
	story := make([]Attachment, 0, len(a.story))
	for _, one := range a.story {
		story = append(story, *one)
	}
	return story
}

// IsUsed says whether no attachment of that name has been seen to be of no use.
func (a *Attacher) IsUsed(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unusedSince[name].IsZero()
}
