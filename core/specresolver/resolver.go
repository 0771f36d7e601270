package specresolver

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/core/providerspec"
)

// Options are the operator's choices. The zero value allows a machine the Secrets and ConfigMaps
// of its own namespace, and every address.
type Options struct {
	// Namespaces are those that objects of every namespace may refer to, besides their own.
	Namespaces []string
	// Rules say where secrets may go.
	Rules Rules
	// Writer writes copies of Secrets. Without it none are kept, and none used.
	Writer client.Writer
	// Clock tells the time. Default: the real one.
	Clock clock.PassiveClock
}

// Resolver reads what specs refer to. It is safe for concurrent use.
type Resolver struct {
	reader *reader
	rules  Rules
	// copies is nil where none are kept.
	copies *copies
}

// New returns a resolver of what live shows, which must not be a cache: that would list all
// Secrets.
func New(live client.Reader, o Options) *Resolver {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	var kept *copies
	if o.Writer != nil {
		kept = &copies{live: live, writer: o.Writer, clock: o.Clock, known: map[Source]*copied{}}
	}
	return &Resolver{
		reader: &reader{live: live, namespaces: o.Namespaces, clock: o.Clock, copies: kept, known: map[object]*entry{}},
		rules:  o.Rules,
		copies: kept,
	}
}

// Copies lists the copies that are kept. What was remembered of others is forgotten.
func (r *Resolver) Copies(ctx context.Context) ([]Copy, error) { return r.copies.list(ctx) }

// RemoveCopy deletes a copy as it was listed, unless it has changed since, or a create has asked
// for it a short while ago.
func (r *Resolver) RemoveCopy(ctx context.Context, listed Copy) error {
	return r.copies.remove(ctx, listed)
}

// NamespaceUID reads the uid of a namespace.
func (r *Resolver) NamespaceUID(ctx context.Context, name string) (types.UID, error) {
	return r.copies.namespaceUID(ctx, name)
}

// Sources are the Secrets that machines of the spec are made with, in a namespace that has the uid
// home. It reads nothing. An error says that this cannot be told.
func Sources(e Effective, home types.UID) ([]Source, error) {
	read, wrong := providerspec.Read(e.Spec)
	if wrong != nil {
		return nil, refusal(wrong)
	}
	var all []Source
	for _, secret := range e.secrets(read) {
		source := Source{Namespace: secret.Namespace, Name: secret.Name}
		if secret.Namespace == e.Namespace {
			source.NamespaceUID = home
		}
		all = append(all, source)
	}
	return all, nil
}

// MayRefer says whether objects in namespace home may refer to namespace.
func (r *Resolver) MayRefer(home, namespace string) bool { return r.reader.mayRefer(home, namespace) }

// Inspect returns what the operator's rules have against a spec, which was read as spec, in the
// order of the paths. It reads nothing.
func (r *Resolver) Inspect(e Effective, spec providerspec.Spec, known *providerspec.Schema) providerspec.Problems {
	return r.rules.inspect(e, spec, known)
}
