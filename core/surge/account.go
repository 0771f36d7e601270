package surge

import (
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
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
// its lock may call its methods. A nil Account has no records, and cannot be written to.
type Account struct {
	mu         sync.Mutex
	clock      clock.PassiveClock
	deployment types.UID
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

// AddMachine records that a Machine of the set is about to be created.
func (a *Account) AddMachine(set types.UID, name string) {
	if a.machines[set] == nil {
		a.machines[set] = map[string]time.Time{}
	}
	a.machines[set][name] = a.clock.Now()
}

// RemoveMachine records that the Machine was certainly not created.
func (a *Account) RemoveMachine(set types.UID, name string) { delete(a.machines[set], name) }

// RemoveMachines records that the cache shows all Machines of the set that were created.
func (a *Account) RemoveMachines(set types.UID) { delete(a.machines, set) }

// UnseenMachines counts the set's Machines that were created and are not among the cached ones.
// After the returned delay none of them counts any more.
func (a *Account) UnseenMachines(set types.UID, cached []clusterv1alpha1.Machine) (count int, left time.Duration) {
	if a == nil || len(a.machines[set]) == 0 {
		return 0, 0
	}
	for i := range cached {
		delete(a.machines[set], cached[i].Name)
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
	if ok && (isNewer(version, record.before) || a.hasExpired(record.at)) {
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

// isNewer compares versions of one object. It is false if one of them cannot be read.
func isNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// IsRefused says whether the error is the API server's refusal, so that the request has changed
// nothing. After any other error nobody knows whether it has.
func IsRefused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest &&
		status.Status().Code < http.StatusInternalServerError
}
