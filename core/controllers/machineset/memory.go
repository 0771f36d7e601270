package machineset

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/scale"
)

// memory is what this process knows of one set and nobody else does. One worker at a time
// reconciles a set, so it needs no lock. Losing it is safe: a new memory trusts the cache less.
type memory struct {
	uid     types.UID
	names   *scale.Names
	pending scale.Pending
	// floor is a version of all Machines from after the set came to have the generation floorOf:
	// what was written to them before that is no newer. It is empty before the first.
	floor   machineVersion
	floorOf int64
	// needsConfirmation: the API server is to be asked which Machines there are before any is
	// created.
	needsConfirmation bool
	// lost is when requests were sent whose answer was lost, by the name to be created.
	lost map[string]time.Time
	// hasReservations: the MachineDeployment's account may record Machines of the set.
	hasReservations bool
	// unseenSince is since when the cache has not shown everything that this process did; zero if
	// it does.
	unseenSince time.Time
	inPlace     inPlaceMemory
	// attempts is how often failed Machines were replaced in vain. The status has it, too, a moment
	// later.
	attempts health.Attempts
	// halted and frozen: an event has told that nothing is replaced because of other Machines, or
	// created because of too many.
	halted, frozen bool
	// reported is when the status was last written.
	reported time.Time
}

// view returns the set's Machines: the cached ones, and what this process knows better. It
// remembers what the cache shows by now.
func (m *memory) view(cached []scale.Machine) []scale.Machine {
	view := m.pending.View(cached)
	if m.attempts.Count > 0 {
		m.attempts = m.attempts.Seen(scale.HealthMachines(view))
	}
	for i := range view {
		m.names.MarkCreated(view[i].Name)
		if len(m.lost) > 0 {
			delete(m.lost, view[i].Name)
		}
	}
	return view
}

// shows says whether a cache that has shown this version of a Machine shows all that was written to
// Machines before the set came to have that generation. A watch keeps the order of writes.
func (m *memory) shows(seen machineVersion, generation int64) bool {
	return m.floor != "" && m.floorOf == generation && (seen == m.floor || seen.isNewerThan(m.floor))
}

// hasLostFor says whether a request was sent that long ago whose answer was lost.
func (m *memory) hasLostFor(long time.Duration, now time.Time) bool {
	for _, sent := range m.lost {
		if now.Sub(sent) >= long {
			return true
		}
	}
	return false
}

// hasWaitedForCache says whether the cache has not shown for that long what this process did.
func (m *memory) hasWaitedForCache(long time.Duration, now time.Time) bool {
	switch {
	case m.pending.IsSettled():
		m.unseenSince = time.Time{}
	case m.unseenSince.IsZero():
		m.unseenSince = now
	default:
		return now.Sub(m.unseenSince) >= long
	}
	return false
}

// memories are those of all sets. They are safe for concurrent use. The zero value is empty.
type memories struct {
	mu    sync.Mutex
	bySet map[types.NamespacedName]*memory
}

// of returns the set's memory, or a new one.
func (m *memories) of(set *clusterv1alpha1.MachineSet) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(set)
	mem := m.bySet[key]
	if mem == nil || mem.uid != set.UID {
		mem = &memory{
			uid: set.UID, names: scale.NewNames(set.Name, string(set.UID), set.Status.NextIndex),
			needsConfirmation: true, lost: map[string]time.Time{}, attempts: readAttempts(set.Status.Remediation),
		}
		if m.bySet == nil {
			m.bySet = map[types.NamespacedName]*memory{}
		}
		m.bySet[key] = mem
	}
	mem.names.Raise(set.Status.NextIndex)
	return mem
}

func (m *memories) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.bySet, key)
}

func readAttempts(r *clusterv1alpha1.MachineSetRemediation) health.Attempts {
	if r == nil {
		return health.Attempts{}
	}
	return health.Attempts{Count: int(r.Attempts), Since: r.Newest.Time}
}

func writeAttempts(a health.Attempts) *clusterv1alpha1.MachineSetRemediation {
	if a.Count == 0 {
		return nil
	}
	return &clusterv1alpha1.MachineSetRemediation{Attempts: int32(a.Count), Newest: metav1.NewTime(a.Since)}
}
