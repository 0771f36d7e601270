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

// kept is how long what was read holds: a Secret that is mended or rotated is seen within that time.
const kept = 10 * time.Second

// missingKept is the same for what could not be read.
const missingKept = 2 * time.Second

// maxKept bounds how many objects are kept.
const maxKept = 1024

// reader reads the Secrets and ConfigMaps that specs refer to: by name, live, and only where the
// operator allows it. What it has read it keeps for seconds, so that a thousand machines with one
// credential cost one read. Its errors are free of what is in a Secret. It is safe for concurrent use.
type reader struct {
	live       client.Reader
	namespaces []string
	clock      clock.PassiveClock

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
	mu    sync.Mutex
	until time.Time
	data  map[string][]byte
	err   error
}

// secret returns all that is in a Secret which an object in namespace home refers to; it must not be
// changed. Errors of type *instance.Failure are what a Machine shows; others are the API server's,
// and pass.
func (r *reader) secret(ctx context.Context, home string, ref clusterv1alpha1.SecretReference) (map[string][]byte, error) {
	return r.read(ctx, home, object{providerspec.Secret, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
}

// value returns what a reference of a spec in namespace home leads to. Errors are those of secret.
func (r *reader) value(ctx context.Context, home string, ref providerspec.Reference) ([]byte, error) {
	from := object{ref.Kind, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
	data, err := r.read(ctx, home, from)
	if err != nil {
		return nil, err
	}
	value, has := data[ref.Key]
	if !has {
		return nil, unresolved(fmt.Sprintf("%s %s/%s has no key %q", ref.Kind, within(home, ref.Namespace), ref.Name, ref.Key))
	}
	return value, nil
}

// mayRefer says whether objects in namespace home may refer to namespace.
func (r *reader) mayRefer(home, namespace string) bool {
	return namespace == "" || namespace == home || slices.Contains(r.namespaces, namespace)
}

func within(home, namespace string) string {
	if namespace == "" {
		return home
	}
	return namespace
}

func (r *reader) read(ctx context.Context, home string, o object) (map[string][]byte, error) {
	if !r.mayRefer(home, o.Namespace) {
		return nil, &instance.Failure{
			Class: instance.SpecInvalid, Reason: clusterv1alpha1.ReasonSpecInvalid,
			Message: fmt.Sprintf("%s %s is in another namespace than %s: name one in %s, or have the operator allow that namespace with --secret-namespaces",
				o.kind, o.NamespacedName, home, home),
		}
	}
	o.Namespace = within(home, o.Namespace)
	e := r.entry(o)
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := r.clock.Now(); now.Before(e.until) {
		return e.data, e.err
	}
	data, err := r.get(ctx, o)
	failure, known := err.(*instance.Failure) //nolint:errorlint // get returns the bare type
	if err != nil && !known {
		return nil, err
	}
	e.data, e.err, e.until = data, nil, r.clock.Now().Add(kept)
	if failure != nil {
		e.err, e.until = failure, r.clock.Now().Add(missingKept)
	}
	return e.data, e.err
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
