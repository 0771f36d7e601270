package fleet

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Rooms let the controllers of this process share out what MachineDeployments may have beyond their replicas. A set that
// replaces Machines before they are gone and a rollout that grows another set draw on the same room, and neither sees in
// the cache at once what the other has just done. So each enters the deployment's room, looks, notes what it is about to do,
// and leaves; see docs/adr/0003. It is safe for concurrent use.
type Rooms struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	of    map[types.NamespacedName]*Room
}

// NewRooms returns rooms in which nobody has done anything yet.
func NewRooms(c clock.PassiveClock) *Rooms {
	return &Rooms{clock: c, of: map[types.NamespacedName]*Room{}}
}

// Enter waits until nobody else is in the room of the deployment of that name and uid. Whoever has entered has to leave.
func (r *Rooms) Enter(deployment types.NamespacedName, uid types.UID) *Room {
	r.mu.Lock()
	room := r.of[deployment]
	if room == nil || room.deployment != uid {
		room = &Room{clock: r.clock, deployment: uid, made: map[types.UID]map[string]time.Time{}, sized: map[string]sized{}}
		r.of[deployment] = room
	}
	r.mu.Unlock()
	room.inside.Lock()
	return room
}

// Forget drops the room of a deployment that is gone.
func (r *Rooms) Forget(deployment types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, deployment)
}

// Room is what was done lately about the Machines of one MachineDeployment.
type Room struct {
	inside     sync.Mutex
	clock      clock.PassiveClock
	deployment types.UID
	// made is when Machines were made, by their set and name.
	made map[types.UID]map[string]time.Time
	// sized is what sets were given, by name.
	sized map[string]sized
}

type sized struct {
	size Size
	// before is the version of the set that was changed; empty if there was none.
	before string
	at     time.Time
}

// Size is how many Machines a set has to have, and how many all of its MachineDeployment may have.
type Size struct{ Replicas, Most int }

// RoomMemory is for how long the cache may not show what was done: as long as a request may be under way whose answer was
// lost. What it has not shown by then never was, or is gone again.
const RoomMemory = 2 * time.Minute

// Leave lets the next one in.
func (m *Room) Leave() {
	for set, names := range m.made {
		maps.DeleteFunc(names, func(_ string, at time.Time) bool { return m.old(at) })
		if len(names) == 0 {
			delete(m.made, set)
		}
	}
	maps.DeleteFunc(m.sized, func(_ string, s sized) bool { return m.old(s.at) })
	m.inside.Unlock()
}

func (m *Room) old(at time.Time) bool { return m.clock.Since(at) >= RoomMemory }

// Made notes that a set's Machine is about to be made.
func (m *Room) Made(set types.UID, name string) {
	if m.made[set] == nil {
		m.made[set] = map[string]time.Time{}
	}
	m.made[set][name] = m.clock.Now()
}

// NotMade notes that it certainly was not.
func (m *Room) NotMade(set types.UID, name string) { delete(m.made[set], name) }

// Seen notes that the cache shows all Machines of the set that were made.
func (m *Room) Seen(set types.UID) { delete(m.made, set) }

// Unseen counts the set's Machines that were made and are not among those that the cache shows, and says in how long there
// will be no such at the latest.
func (m *Room) Unseen(set types.UID, shown []clusterv1alpha1.Machine) (count int, left time.Duration) {
	if len(m.made[set]) == 0 {
		return 0, 0
	}
	for i := range shown {
		delete(m.made[set], shown[i].Name)
	}
	for _, at := range m.made[set] {
		if !m.old(at) {
			count++
			left = max(left, RoomMemory-m.clock.Since(at))
		}
	}
	return count, left
}

// Sized notes that a set was given a size, or may have been. Before is the version of the set that was changed; empty for
// one that was made with it.
func (m *Room) Sized(name, before string, size Size) {
	m.sized[name] = sized{size: size, before: before, at: m.clock.Now()}
}

// Given returns the size that the set of that name was given and that this version of it, from the cache, does not show;
// false if there is none. A size that it shows is forgotten.
func (m *Room) Given(name, version string) (Size, bool) {
	given, ok := m.sized[name]
	if ok && (given.before == "" || Newer(version, given.before) || m.old(given.at)) {
		delete(m.sized, name)
		return Size{}, false
	}
	return given.size, ok
}

// Unlisted sums the sizes of sets that are not among those that the cache shows, as those that were just made are not. Of those
// that it shows, Given tells.
func (m *Room) Unlisted(shown func(name string) bool) int {
	total := 0
	for name, given := range m.sized {
		switch {
		case m.old(given.at), shown(name) && given.before == "":
			delete(m.sized, name)
		case shown(name):
		default:
			total += given.size.Replicas
		}
	}
	return total
}
