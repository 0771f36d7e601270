package machineset

import (
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/scale"
)

// memory is what this process knows of one set and nobody else does. A set is reconciled by one
// worker at a time, so it needs no lock. Losing it is safe: whatever takes its place starts with
// doubts.
type memory struct {
	uid     types.UID
	names   *scale.Names
	pending scale.Pending
	// floor is a version of all Machines from after the set came to have the generation floorOf:
	// what was written to them before that is no newer. It is empty before the first.
	floor   machineVersion
	floorOf int64
	// needsConfirmation: the API server is to be asked what there is before anything is created.
	needsConfirmation bool
	// lost is when requests were sent whose answer was lost, by the name to be created.
	lost map[string]time.Time
	// hasReservations: in the MachineDeployment's room there may be notes of Machines that the set
	// has made.
	hasReservations bool
	// unseenSince is since when the cache has not shown everything that this process did; zero if
	// it does.
	unseenSince time.Time
	// template was last brought to the Machines; reached is which version of each had all of it, or
	// was given it just then and is what the cache still shows.
	template clusterv1alpha1.MachineTemplateSpec
	reached  map[types.UID]string
	// attempts is how often failed Machines were replaced in vain. The status has it, too, a moment
	// later.
	attempts health.Attempts
	// halted and frozen: an event has told that nothing is replaced because of other Machines, or
	// created because of too many.
	halted, frozen bool
	// reported is when the status was last written.
	reported time.Time
}

// given returns which versions of Machines need nothing any more to be up to the template.
func (m *memory) given(template *clusterv1alpha1.MachineTemplateSpec) map[types.UID]string {
	if !apiequality.Semantic.DeepEqual(&m.template, template) {
		m.template, m.reached = *template.DeepCopy(), nil
	}
	return m.reached
}

// shows says whether a cache that has shown this version of a Machine shows all that was written to
// Machines before the set came to have that generation: a watch keeps the order.
func (m *memory) shows(seen machineVersion, generation int64) bool {
	return m.floor != "" && m.floorOf == generation && (seen == m.floor || seen.isNewerThan(m.floor))
}

// setMemories are safe for concurrent use. The zero value is empty.
type setMemories struct {
	mu    sync.Mutex
	bySet map[types.NamespacedName]*memory
}

func (m *setMemories) of(set *clusterv1alpha1.MachineSet) *memory {
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

func (m *setMemories) forget(key types.NamespacedName) {
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
