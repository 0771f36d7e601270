package fleet

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Rooms let the controllers of this process share out what MachineDeployments may have beyond their replicas. A set that
// replaces Machines before they are gone and a rollout that grows another set draw on the same room, and neither sees in
// the cache at once what the other has just done. So each enters the deployment's room, looks, acts, notes what it did, and
// leaves; see docs/adr/0003. It is safe for concurrent use.
type Rooms struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	of    map[types.NamespacedName]*Room
}

// NewRooms returns rooms in which nobody has done anything yet.
func NewRooms(c clock.PassiveClock) *Rooms {
	return &Rooms{clock: c, of: map[types.NamespacedName]*Room{}}
}

// Enter waits until nobody else is in the deployment's room. Whoever has entered has to leave.
func (r *Rooms) Enter(deployment types.NamespacedName) *Room {
	r.mu.Lock()
	room := r.of[deployment]
	if room == nil {
		room = &Room{clock: r.clock, made: map[types.UID]map[string]time.Time{}, sized: map[string]sized{}}
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
	inside sync.Mutex
	clock  clock.PassiveClock
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

// roomMemory is for how long the cache may not show what was done: as long as a request may be under way whose answer was
// lost. What it has not shown by then never was, or is gone again.
const roomMemory = 2 * time.Minute

// Leave lets the next one in.
func (m *Room) Leave() { m.inside.Unlock() }

// Made notes that a set's Machine was made, or may have been.
func (m *Room) Made(set types.UID, name string) {
	if m.made[set] == nil {
		m.made[set] = map[string]time.Time{}
	}
	m.made[set][name] = m.clock.Now()
}

// Unseen counts the set's Machines that were made and are not among those that the cache shows, and in how long there will
// be no such at the latest.
func (m *Room) Unseen(set types.UID, shown func(name string) bool) (count int, left time.Duration) {
	for name, at := range m.made[set] {
		age := m.clock.Since(at)
		if age >= roomMemory || shown(name) {
			delete(m.made[set], name)
			continue
		}
		count++
		left = max(left, roomMemory-age)
	}
	if len(m.made[set]) == 0 {
		delete(m.made, set)
	}
	return count, left
}

// Sized notes that a set was given a size, or may have been. Before is the version of the set that was changed; empty for
// one that was made.
func (m *Room) Sized(name, before string, size Size) {
	m.sized[name] = sized{size: size, before: before, at: m.clock.Now()}
}

// Given returns the size that the set of that name was given and that this version of it, from the cache, does not show;
// false if there is none.
func (m *Room) Given(name, version string) (Size, bool) {
	given, ok := m.sized[name]
	if ok && (given.before == "" || Newer(version, given.before) || m.clock.Since(given.at) >= roomMemory) {
		delete(m.sized, name)
		return Size{}, false
	}
	return given.size, ok
}

// Unlisted sums the sizes of sets that were made and are not among those that the cache shows.
func (m *Room) Unlisted(shown func(name string) bool) int {
	total := 0
	for name, given := range m.sized {
		switch {
		case given.before != "":
		case shown(name) || m.clock.Since(given.at) >= roomMemory:
			delete(m.sized, name)
		default:
			total += given.size.Replicas
		}
	}
	return total
}
