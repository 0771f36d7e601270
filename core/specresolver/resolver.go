package specresolver

import (
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
	// Clock tells the time. Default: the real one.
	Clock clock.PassiveClock
}

// Resolver reads what specs refer to. It is safe for concurrent use.
type Resolver struct {
	reader *reader
	rules  Rules
}

// New returns a resolver of what live shows, which must not be a cache: that would list all
// Secrets.
func New(live client.Reader, o Options) *Resolver {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Resolver{
		reader: &reader{live: live, namespaces: o.Namespaces, clock: o.Clock, known: map[object]*entry{}},
		rules:  o.Rules,
	}
}

// MayRefer says whether objects in namespace home may refer to namespace.
func (r *Resolver) MayRefer(home, namespace string) bool { return r.reader.mayRefer(home, namespace) }

// Inspect returns what the operator's rules have against a spec, which was read as spec, in the
// order of the paths. It reads nothing.
func (r *Resolver) Inspect(e Effective, spec providerspec.Spec, known Schema) providerspec.Problems {
	return r.rules.inspect(e, spec, known)
}
