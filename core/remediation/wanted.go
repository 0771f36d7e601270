// Package remediation tells sets which Machines health checks want replaced at this moment. The
// condition OwnerRemediated of a Machine says so, too, but may be older: a thousand of them are
// taken away one after the other when an outage ends. A set replaces a Machine only when both say
// so.
package remediation

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Wanted are the Machines that are to be replaced. It is safe for concurrent use. A new one has
// none: what an earlier process wanted does not count.
type Wanted struct {
	mu          sync.Mutex
	byNamespace map[string]map[types.UID]bool
}

// New returns one without Machines.
func New() *Wanted { return &Wanted{byNamespace: map[string]map[types.UID]bool{}} }

// Set says which Machines of a namespace are to be replaced, and that no other is. The map is
// Wanted's from then on.
func (w *Wanted) Set(namespace string, uids map[types.UID]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(uids) == 0 {
		delete(w.byNamespace, namespace)
		return
	}
	w.byNamespace[namespace] = uids
}

// Has says whether the Machine is to be replaced.
func (w *Wanted) Has(namespace string, uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byNamespace[namespace][uid]
}
