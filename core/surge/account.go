package surge

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/apiserver"
)

// Expiry is how long a record counts that the cache does not show. A request whose answer was lost
// may be under way for that long. What the cache does not show by then was never created, or is
// gone again.
const Expiry = 2 * time.Minute

// Accounts are those of all MachineDeployments. One process holds them in memory, since only the
// leader works. They are safe for concurrent use.
type Accounts struct {
	clock        clock.PassiveClock
	mu           sync.Mutex
	byDeployment map[types.NamespacedName]*Account
}

// NewAccounts returns accounts without records.
func NewAccounts(c clock.PassiveClock) *Accounts {
	return &Accounts{clock: c, byDeployment: map[types.NamespacedName]*Account{}}
}

// Lock returns the account of the deployment of that name and uid once nobody else holds it. The
// caller has to call Unlock.
func (a *Accounts) Lock(deployment types.NamespacedName, uid types.UID) *Account {
	a.mu.Lock()
	account := a.byDeployment[deployment]
	if account == nil || account.deployment != uid {
		account = &Account{
			clock: a.clock, deployment: uid, machines: map[types.UID]map[string]time.Time{}, sizes: map[string]sizeRecord{},
		}
		a.byDeployment[deployment] = account
	}
	a.mu.Unlock()
	account.mu.Lock()
	return account
}

// Forget drops the account of a deployment that is gone.
func (a *Accounts) Forget(deployment types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byDeployment, deployment)
}

// Account records what was lately done about the Machines of one MachineDeployment. Only who holds
// its lock may call its methods. A nil Account has no records and keeps none.
type Account struct {
	mu         sync.Mutex
	clock      clock.PassiveClock
	deployment types.UID
	// most is how many Machines the deployment wants at most; 0 while this process has not seen it.
	most int
	// machines is when creations were recorded, by the Machine's set and name.
	machines map[types.UID]map[string]time.Time
	// sizes are those that sets were given, by the set's name.
	sizes map[string]sizeRecord
}

type sizeRecord struct {
	size Size
	// before is the version of the set that was changed.
	before string
	at     time.Time
}

// Size is how many Machines a set has to have, and how many all of its MachineDeployment may have.
type Size struct{ Replicas, Max int }

// Unlock lets the next caller of Lock in.
func (a *Account) Unlock() {
	if a == nil {
		return
	}
	for set, names := range a.machines {
		maps.DeleteFunc(names, func(_ string, at time.Time) bool { return a.hasExpired(at) })
		if len(names) == 0 {
			delete(a.machines, set)
		}
	}
	maps.DeleteFunc(a.sizes, func(_ string, r sizeRecord) bool { return a.hasExpired(r.at) })
	a.mu.Unlock()
}

func (a *Account) hasExpired(at time.Time) bool { return a.clock.Since(at) >= Expiry }

// SetMost records how many Machines the deployment wants at most now. Its sets are told that when
// they get another size, which may be a while later.
func (a *Account) SetMost(machines int) {
	if a != nil {
		a.most = machines
	}
}

// AddMachine records that a Machine of the set is about to be created.
func (a *Account) AddMachine(set types.UID, name string) {
	if a == nil {
		return
	}
	if a.machines[set] == nil {
		a.machines[set] = map[string]time.Time{}
	}
	a.machines[set][name] = a.clock.Now()
}

// RemoveMachine records that the Machine was certainly not created.
func (a *Account) RemoveMachine(set types.UID, name string) {
	if a != nil {
		delete(a.machines[set], name)
	}
}

// RemoveMachines records that the cache shows all Machines of the set that were created.
func (a *Account) RemoveMachines(set types.UID) {
	if a != nil {
		delete(a.machines, set)
	}
}

// UnseenMachines counts the set's Machines that were created and are not among the cached ones.
// After the returned delay none of them counts any more.
func (a *Account) UnseenMachines(set types.UID, cached []*clusterv1alpha1.Machine) (count int, left time.Duration) {
	if a == nil || len(a.machines[set]) == 0 {
		return 0, 0
	}
	for _, m := range cached {
		delete(a.machines[set], m.Name)
	}
	for _, at := range a.machines[set] {
		if !a.hasExpired(at) {
			count++
			left = max(left, Expiry-a.clock.Since(at))
		}
	}
	return count, left
}

// SetSize records that a set was given a size, or may have been. before is the version of the set
// that was changed.
func (a *Account) SetSize(name, before string, size Size) {
	a.sizes[name] = sizeRecord{size: size, before: before, at: a.clock.Now()}
}

// UnseenSize returns the size that the set was given and that this version of it, from the cache,
// does not show. It is false if there is none. A size that the version shows is forgotten.
func (a *Account) UnseenSize(name, version string) (Size, bool) {
	if a == nil {
		return Size{}, false
	}
	record, ok := a.sizes[name]
	if ok && (apiserver.IsNewer(version, record.before) || a.hasExpired(record.at)) {
		delete(a.sizes, name)
		return Size{}, false
	}
	return record.size, ok
}

// unseenSets sums the sizes that were given to sets that are not cached, as those just created are
// not.
func (a *Account) unseenSets(isCached func(name string) bool) int {
	if a == nil {
		return 0
	}
	total := 0
	for name, record := range a.sizes {
		if !isCached(name) && !a.hasExpired(record.at) {
			total += record.size.Replicas
		}
	}
	return total
}

// AloneSpare is how many Machines a set without a MachineDeployment may have beyond its size while
// others are on their way out: as many as the sets of a MachineDeployment that does not say.
const AloneSpare = 1

// Room is how many Machines a set may have.
type Room struct {
	// Spare is how many there may be beyond the set's size while others are on their way out.
	Spare int
	// Siblings is how many Machines the MachineDeployment's other sets have, and Bound how many all
	// its sets may have together; 0 if nobody knows.
	Siblings, Bound int
}

// Alone returns the room of a set of that size that belongs to no MachineDeployment.
func Alone(size int) Room { return Room{Spare: AloneSpare, Bound: size + AloneSpare} }

// Sibling is another set of the MachineDeployment, and its Machines, both from the cache.
type Sibling struct {
	Set      *clusterv1alpha1.MachineSet
	Machines []*clusterv1alpha1.Machine
}

// Room returns the room of a set of that size. What the deployment may have, and neither the set
// nor its siblings hold, is to spare: by what the set was told, or what the deployment wants now if
// that is less. A sibling holds the Machines that it has, or as many as it
// may create without being asked again: package rollout counts the same way. The room is empty if
// nobody can read how many Machines the deployment may have.
func (a *Account) Room(set *clusterv1alpha1.MachineSet, size int, siblings []Sibling) Room {
	own, ok := a.sizeOf(set)
	if !ok {
		return Room{}
	}
	room := Room{Bound: own.Max}
	left := own.Max - size
	if a != nil && a.most > 0 {
		left = min(own.Max, a.most) - size
	}
	for _, s := range siblings {
		given, _ := a.sizeOf(s.Set)
		unseen, _ := a.UnseenMachines(s.Set.UID, s.Machines)
		room.Siblings += len(s.Machines)
		left -= max(len(s.Machines)+unseen, given.Replicas)
	}
	left -= a.unseenSets(func(name string) bool {
		return name == set.Name || slices.ContainsFunc(siblings, func(s Sibling) bool { return s.Set.Name == name })
	})
	room.Spare = max(left, 0)
	return room
}

// sizeOf returns the size that the set was given last. It is false if nobody can read how many
// Machines its MachineDeployment may have.
func (a *Account) sizeOf(set *clusterv1alpha1.MachineSet) (Size, bool) {
	if size, ok := a.UnseenSize(set.Name, set.ResourceVersion); ok {
		return size, true
	}
	most, err := strconv.ParseInt(set.Annotations[clusterv1alpha1.MaxReplicasAnnotation], 10, 32)
	return Size{Replicas: int(ptr.Deref(set.Spec.Replicas, 0)), Max: int(most)}, err == nil
}
