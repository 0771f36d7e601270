package specresolver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups="",namespace=millwright-credentials,resources=secrets,verbs=get;list;create;update;delete

// CopiesNamespace holds the copies. It comes with the CRDs and stays as long as they do. No spec
// can refer to what is in it.
const CopiesNamespace = "millwright-credentials"

// copyType is the type of the Secrets that are copies.
const copyType corev1.SecretType = "cluster.k8s.io/millwright-copy"

// The annotations of a copy say what it is a copy of.
const (
	copiedNamespace    = "cluster.k8s.io/copied-namespace"
	copiedNamespaceUID = "cluster.k8s.io/copied-namespace-uid"
	copiedName         = "cluster.k8s.io/copied-name"
)

// copyHolds is how long a copy counts as right after it was read. Creates meanwhile do not read it
// again.
const copyHolds = time.Minute

// createShows is how long a create may take to show in the cache of Machines. A copy that a create
// has asked for stays as long, whatever Machines there seem to be.
const createShows = time.Minute

// Source is a Secret that machines are made with. ConfigMaps need no copy: what came from them is
// written down in the Machine's status before its VM is made.
type Source struct {
	Namespace, Name string
	// NamespaceUID is set where the source is in the machine's own namespace. It keeps the copies
	// from whoever gets a namespace of the same name later.
	NamespaceUID types.UID
}

// String names the source for people.
func (s Source) String() string { return fmt.Sprintf("Secret %s/%s", s.Namespace, s.Name) }

// copyName is the name of the source's copy.
func (s Source) copyName() string {
	all := strings.Join([]string{s.Namespace, string(s.NamespaceUID), s.Name}, "/")
	sum := sha256.Sum256([]byte(all))
	return "copy-" + hex.EncodeToString(sum[:20])
}

// copyOf is the copy of a source that holds data.
func copyOf(s Source, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: CopiesNamespace, Name: s.copyName(),
			Annotations: map[string]string{
				copiedNamespace:    s.Namespace,
				copiedNamespaceUID: string(s.NamespaceUID), copiedName: s.Name,
			},
		},
		Type: copyType, Data: data,
	}
}

// Copy is a copy as it was listed.
type Copy struct {
	Source  Source
	name    string
	uid     types.UID
	version string
}

// copies keeps copies of the Secrets that machines are made with: a VM can be deleted although its
// Secret is gone, or the right to read that. It is safe for concurrent use.
type copies struct {
	live   client.Reader
	writer client.Writer
	clock  clock.PassiveClock

	mu    sync.Mutex
	known map[Source]*copied
}

// copied is what is known of a copy. Its lock is held while the copy is read or written.
type copied struct {
	mu sync.Mutex
	// data is what the copy held when it was looked at last, at since; since is zero before.
	data  map[string][]byte
	since time.Time
	// wanted is when the copy was last asked for before a create.
	wanted time.Time
}

func (c *copies) of(s Source) *copied {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, has := c.known[s]
	if !has {
		known = &copied{}
		c.known[s] = known
	}
	return known
}

// namespaceUID reads the uid of a namespace.
func (c *copies) namespaceUID(ctx context.Context, name string) (types.UID, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := c.live.Get(ctx, types.NamespacedName{Name: name}, namespace)
	if apierrors.IsForbidden(err) {
		return "", unresolved(fmt.Sprintf("Millwright may not read namespace %s, by whose uid it knows its copies of credentials: apply deploy/rbac", name))
	}
	if err != nil {
		return "", fmt.Errorf("read namespace %s: %w", name, err)
	}
	return namespace.UID, nil
}

// source returns a Secret as the source of a machine in namespace home.
func (c *copies) source(ctx context.Context, home string, secret types.NamespacedName) (Source, error) {
	s := Source{Namespace: secret.Namespace, Name: secret.Name}
	if s.Namespace != home {
		return s, nil
	}
	var err error
	s.NamespaceUID, err = c.namespaceUID(ctx, home)
	return s, err
}

// get reads the copy of a source; nil where there is none.
func (c *copies) get(ctx context.Context, s Source) (*corev1.Secret, error) {
	found := &corev1.Secret{}
	err := c.live.Get(ctx, types.NamespacedName{Namespace: CopiesNamespace, Name: s.copyName()}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, copyTrouble(s, err)
	}
	if found.Type != copyType {
		return nil, unresolved(fmt.Sprintf("Secret %s/%s is not Millwright's copy of %s: delete it", CopiesNamespace, found.Name, s))
	}
	return found, nil
}

// find returns what the copy of a Secret holds for machines in namespace home; nil where there is
// none.
func (c *copies) find(ctx context.Context, home string, secret types.NamespacedName) (map[string][]byte, error) {
	s, err := c.source(ctx, home, secret)
	if err != nil {
		return nil, err
	}
	found, err := c.get(ctx, s)
	if found == nil || err != nil {
		return nil, err
	}
	if found.Data == nil {
		return map[string][]byte{}, nil
	}
	return found.Data, nil
}

// keep has the copy of a source hold data, before a create or for VMs that are there. It writes
// only what has changed.
func (c *copies) keep(ctx context.Context, s Source, data map[string][]byte, create bool) error {
	// What was read is shared with others.
	data = maps.Clone(data)
	known := c.of(s)
	known.mu.Lock()
	defer known.mu.Unlock()
	now := c.clock.Now()
	if create {
		known.wanted = now
	}
	if !known.since.IsZero() && now.Before(known.since.Add(copyHolds)) && sameData(known.data, data) {
		return nil
	}
	known.since = time.Time{}
	found, err := c.get(ctx, s)
	if err != nil {
		return err
	}
	switch {
	case found == nil:
		err = c.writer.Create(ctx, copyOf(s, data))
	case !sameData(found.Data, data):
		found.Data = data
		err = c.writer.Update(ctx, found)
	}
	if err != nil {
		return copyTrouble(s, err)
	}
	known.data, known.since = data, now
	return nil
}

// list returns all copies. What was remembered of others is forgotten.
func (c *copies) list(ctx context.Context) ([]Copy, error) {
	began := c.clock.Now()
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := c.live.List(ctx, found, client.InNamespace(CopiesNamespace)); err != nil {
		return nil, fmt.Errorf("list the copies of credentials in namespace %s: %w", CopiesNamespace, err)
	}
	var all []Copy
	there := map[Source]bool{}
	for _, o := range found.Items {
		of := Source{
			Namespace: o.Annotations[copiedNamespace], NamespaceUID: types.UID(o.Annotations[copiedNamespaceUID]),
			Name: o.Annotations[copiedName],
		}
		if of.copyName() == o.Name {
			all, there[of] = append(all, Copy{Source: of, name: o.Name, uid: o.UID, version: o.ResourceVersion}), true
		}
	}
	c.forget(func(s Source) bool { return there[s] }, began)
	return all, nil
}

// forget drops what is known of copies that were not there at a time.
func (c *copies) forget(there func(Source) bool, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.known, func(s Source, known *copied) bool {
		// One that is locked is being read or written.
		if there(s) || !known.mu.TryLock() {
			return false
		}
		defer known.mu.Unlock()
		return known.since.Before(at) && known.wanted.Before(at)
	})
}

// remove deletes a copy.
func (c *copies) remove(ctx context.Context, listed Copy) error {
	known := c.of(listed.Source)
	known.mu.Lock()
	defer known.mu.Unlock()
	if !known.wanted.IsZero() && c.clock.Now().Before(known.wanted.Add(createShows)) {
		return nil
	}
	known.since = time.Time{}
	o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: CopiesNamespace, Name: listed.name}}
	err := c.writer.Delete(ctx, o, client.Preconditions{UID: &listed.uid, ResourceVersion: &listed.version})
	if apierrors.IsConflict(err) {
		return nil // it has changed since: the next look decides
	}
	return client.IgnoreNotFound(err)
}

// copyTrouble says what to do where copies cannot be kept.
func copyTrouble(s Source, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return unresolved(fmt.Sprintf("No copy of %s can be kept, without which its VMs could not be deleted for certain: there is no namespace %s; apply deploy/crds",
			s, CopiesNamespace))
	case apierrors.IsForbidden(err):
		return unresolved(fmt.Sprintf("No copy of %s can be kept, without which its VMs could not be deleted for certain: apply the Role of deploy/rbac in namespace %s (%v)",
			s, CopiesNamespace, err))
	}
	return fmt.Errorf("keep a copy of %s: %w", s, err)
}

func sameData(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }
