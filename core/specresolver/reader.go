package specresolver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
)

// kept is how long what was read holds: a Secret that is mended or rotated is seen within that
// time.
const kept = 10 * time.Second

// missingKept is the same for what could not be read.
const missingKept = 2 * time.Second

// maxKept bounds how many objects are kept.
const maxKept = 1024

// reader reads the Secrets and ConfigMaps that specs refer to: by name, live, and only where the
// operator allows it. What it has read it keeps for seconds, so that a thousand machines with one
// credential cost one read. Its errors are free of what is in a Secret. It is safe for concurrent
// use.
type reader struct {
	live       client.Reader
	namespaces []string
	clock      clock.PassiveClock
	// copies is nil where none are kept.
	copies *copies

	mu    sync.Mutex
	known map[object]*entry
}

// object is what can be read.
type object struct {
	kind providerspec.Kind
	types.NamespacedName
}

// entry is what was read of an object. Its lock is held while it is being read.
type entry struct {
	mu      sync.Mutex
	until   time.Time
	data    map[string][]byte
	failure *instance.Failure
	// copied is what its copy holds, by the namespace of the machine; nil for no copy. It is read
	// only where the object cannot be.
	copied map[string]map[string][]byte
}

// reading is what was read for a machine.
type reading struct {
	data map[string][]byte
	// missing is why data comes from a copy; nil where it does not.
	missing *instance.Failure
}

// secret returns all that is in a Secret which a spec refers to; it must not be changed. Errors of
// type *instance.Failure are what a Machine shows; others are the API server's, and pass.
func (r *reader) secret(ctx context.Context, e Effective, ref clusterv1alpha1.SecretReference) (reading, error) {
	return r.read(ctx, e, object{providerspec.Secret, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
}

// value returns what a reference leads to, and why it comes from a copy, if it does. Errors are
// those of secret.
func (r *reader) value(ctx context.Context, e Effective, ref providerspec.Reference) (value []byte, missing, err error) {
	from := object{ref.Kind, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
	found, err := r.read(ctx, e, from)
	if err != nil {
		return nil, nil, err
	}
	value, has := found.data[ref.Key]
	if !has {
		return nil, nil, unresolved(fmt.Sprintf("%s %s/%s has no key %q", ref.Kind, within(e.Namespace, ref.Namespace), ref.Name, ref.Key))
	}
	if found.missing != nil {
		missing = at(ref.Path, found.missing)
	}
	return value, missing, nil
}

// mayRefer says whether objects in namespace home may refer to namespace.
func (r *reader) mayRefer(home, namespace string) bool {
	if within(home, namespace) == CopiesNamespace {
		return false
	}
	return namespace == "" || namespace == home || slices.Contains(r.namespaces, namespace)
}

func within(home, namespace string) string {
	if namespace == "" {
		return home
	}
	return namespace
}

// read reads an object for a machine. A machine that may exist gets what the copy of a Secret holds
// where the Secret cannot be read.
func (r *reader) read(ctx context.Context, e Effective, o object) (reading, error) {
	if !r.mayRefer(e.Namespace, o.Namespace) {
		return reading{}, refusedSource(e.Namespace, o)
	}
	o.Namespace = within(e.Namespace, o.Namespace)
	known := r.entry(o)
	known.mu.Lock()
	defer known.mu.Unlock()
	if now := r.clock.Now(); !now.Before(known.until) {
		if err := r.refresh(ctx, o, known); err != nil {
			return reading{}, err
		}
	}
	if known.failure == nil {
		return reading{data: known.data}, nil
	}
	if !e.MayExist || r.copies == nil || o.kind != providerspec.Secret {
		return reading{}, known.failure
	}
	data, read := known.copied[e.Namespace]
	if !read {
		found, err := r.copies.find(ctx, e.Namespace, o.NamespacedName)
		if err != nil {
			return reading{}, err
		}
		data, known.copied[e.Namespace] = found, found
	}
	if data == nil {
		return reading{}, known.failure
	}
	return reading{data: data, missing: known.failure}, nil
}

// refresh reads what is known of an object again. The error is the API server's.
func (r *reader) refresh(ctx context.Context, o object, known *entry) error {
	data, err := r.get(ctx, o)
	failure, is := err.(*instance.Failure) //nolint:errorlint // get returns the bare type
	if err != nil && !is {
		return err
	}
	known.data, known.failure, known.until = data, nil, r.clock.Now().Add(kept)
	if failure != nil {
		known.failure, known.until = failure, r.clock.Now().Add(missingKept)
		known.copied = map[string]map[string][]byte{}
	}
	return nil
}

// refusedSource is the failure of a machine that refers to where it may not.
func refusedSource(home string, o object) error {
	message := fmt.Sprintf("%s %s is in another namespace than %s: name one in %s, or have the operator allow that namespace with --secret-namespaces",
		o.kind, o.NamespacedName, home, home)
	if within(home, o.Namespace) == CopiesNamespace {
		message = fmt.Sprintf("%s %s: namespace %s is Millwright's own, and no machine is made with what is in it", o.kind, o.Name, CopiesNamespace)
	}
	return &instance.Failure{Class: instance.SpecInvalid, Reason: clusterv1alpha1.ReasonSpecInvalid, Message: message}
}

func (r *reader) entry(o object) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.known[o]; known {
		return e
	}
	if len(r.known) >= maxKept {
		clear(r.known)
	}
	e := &entry{}
	r.known[o] = e
	return e
}

// get reads an object.
func (r *reader) get(ctx context.Context, o object) (map[string][]byte, error) {
	var data map[string][]byte
	var err error
	if o.kind == providerspec.ConfigMap {
		var m corev1.ConfigMap
		err = r.live.Get(ctx, o.NamespacedName, &m)
		data = make(map[string][]byte, len(m.Data))
		for key, value := range m.Data {
			data[key] = []byte(value)
		}
	} else {
		var s corev1.Secret
		err = r.live.Get(ctx, o.NamespacedName, &s)
		data = s.Data
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, unresolved(fmt.Sprintf("%s %s is not there", o.kind, o.NamespacedName))
	case apierrors.IsForbidden(err):
		return nil, unresolved(fmt.Sprintf("Millwright may not read %s %s: bind its ServiceAccount to the ClusterRole millwright-credentials in namespace %s",
			o.kind, o.NamespacedName, o.Namespace))
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", o.kind, o.NamespacedName, err)
	}
	return data, nil
}

// unresolved is the failure of what is not there yet.
func unresolved(message string) *instance.Failure {
	return &instance.Failure{Class: instance.Precondition, Reason: clusterv1alpha1.ReasonReferenceUnresolved, Message: message}
}
