package scale

import (
	"crypto/sha256"
	"encoding/base32"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// maxName is how long a name of a Machine may be: it becomes a host name, and a label of the
	// Node.
	maxName = 63
	// tagLength makes 2^25 tags, which tell sets of the same name apart.
	tagLength = 5
	// indexLength is the room for a number; a set that creates a Machine a second fills it in 300
	// years.
	indexLength = 10
)

// Names numbers the Machines of one set; the package comment says why. It is the memory of one
// process and not safe for concurrent use.
type Names struct {
	prefix string
	next   int64
	states map[int64]numberState
	// lost is when requests were sent whose answer was lost.
	lost map[int64]time.Time
}

// numberState is what is known of a number from next on.
type numberState int

const (
	// numberUnknown: what became of it is not known. This process or its predecessor may have tried
	// it if a higher one was tried.
	numberUnknown numberState = iota
	// numberDecided: the Machine was created, or the name is a stranger's.
	numberDecided
	// numberRefused: the API server has refused the Machine. The number can be tried again as long
	// as no higher one is decided.
	numberRefused
)

// NewNames returns the names of the set with that name and uid. next is what was persisted, 0 at
// first.
func NewNames(set, uid string, next int64) *Names {
	return &Names{prefix: namePrefix(set, uid), next: next, states: map[int64]numberState{}, lost: map[int64]time.Time{}}
}

// namePrefix is the set's name, shortened if need be, and a tag made from its uid.
func namePrefix(set, uid string) string {
	sum := sha256.Sum256([]byte(uid))
	tag := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:tagLength]
	if longest := maxName - tagLength - indexLength - len("--"); len(set) > longest {
		set = strings.TrimRight(set[:longest], "-.")
	}
	return set + "-" + tag + "-"
}

// Raise tells n what was persisted, by this process or another. A lower number than known changes
// nothing.
func (n *Names) Raise(next int64) {
	n.next = max(n.next, next)
	n.compact()
}

// Take returns the count names to create Machines under. First come those that may have been tried
// and whose outcome is not known. So no Machine is created in place of one that may yet appear.
// Then come the lowest others that are not decided. Until their outcome is known, Take returns
// them again.
func (n *Names) Take(count int) []string {
	numbers := make([]int64, 0, count)
	take := func(i int64) {
		if len(numbers) < count {
			numbers = append(numbers, i)
		}
	}
	top := n.next
	for i := range n.states {
		top = max(top, i+1)
	}
	for i := n.next; i < top; i++ {
		if n.states[i] == numberUnknown {
			take(i)
		}
	}
	for i := n.next; len(numbers) < count; i++ {
		if i >= top || n.states[i] == numberRefused {
			take(i)
		}
	}
	names := make([]string, 0, count)
	for _, i := range numbers {
		n.states[i] = numberUnknown
		names = append(names, n.prefix+strconv.FormatInt(i, 10))
	}
	return names
}

// MarkCreated tells n that there is, or was, an object of that name. Names of another form are
// ignored.
func (n *Names) MarkCreated(name string) { n.set(name, numberDecided) }

// MarkRefused tells n that the last request has created no Machine of that name. It is false, and
// nothing changes, if one that was lost before may yet be carried out.
func (n *Names) MarkRefused(name string) bool {
	if i, _ := n.index(name); !n.lost[i].IsZero() {
		return false
	}
	n.set(name, numberRefused)
	return true
}

// MarkLost tells n that nobody knows what came of a request that was sent at that time.
func (n *Names) MarkLost(name string, sent time.Time) {
	if i, ok := n.index(name); ok {
		n.lost[i] = sent
	}
}

// LostSince is when the earliest of the requests was sent whose outcome nobody knows; zero if there
// is none.
func (n *Names) LostSince() time.Time {
	var earliest time.Time
	for _, sent := range n.lost {
		if earliest.IsZero() || sent.Before(earliest) {
			earliest = sent
		}
	}
	return earliest
}

// GiveUpLost tells n that requests sent at that time or earlier are no longer under way, and that
// all Machines they have created are marked.
func (n *Names) GiveUpLost(until time.Time) {
	for i, sent := range n.lost {
		if !sent.After(until) {
			delete(n.lost, i)
			n.states[i] = numberRefused
		}
	}
	n.compact()
}

func (n *Names) set(name string, state numberState) {
	i, ok := n.index(name)
	if !ok || i < n.next || n.states[i] == numberDecided {
		return
	}
	n.states[i] = state
	delete(n.lost, i)
	n.compact()
}

// compact moves next past all numbers that are settled, up to the highest decided one.
func (n *Names) compact() {
	for i := n.next; n.states[i] != numberUnknown; i++ {
		if n.states[i] == numberDecided {
			n.next = i + 1
		}
	}
	maps.DeleteFunc(n.states, func(i int64, _ numberState) bool { return i < n.next })
	maps.DeleteFunc(n.lost, func(i int64, _ time.Time) bool { return i < n.next })
}

// Next is the number to persist.
func (n *Names) Next() int64 { return n.next }

// IsDecided says whether the Machine of that name may be removed for good: only if its number is
// below next, the persisted one, can it never be created again. Machines with names of another form
// may.
func IsDecided(set, uid, name string, next int64) bool {
	i, ok := NewNames(set, uid, next).index(name)
	return !ok || i < next
}

func (n *Names) index(name string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, n.prefix)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	return int64(i), true
}

// Pending is what one process created and deleted of a set and its cache does not show yet. The
// zero value is empty. It is not safe for concurrent use.
type Pending struct {
	// created holds Machines by uid.
	created map[string]Machine
	// deleted holds uids.
	deleted map[string]bool
}

// AddCreated records a Machine that exists, whether the cache shows it or not.
func (p *Pending) AddCreated(m Machine) {
	if p.created == nil {
		p.created = map[string]Machine{}
	}
	p.created[m.UID] = m
}

// AddDeleted records that the deletion of the Machine with that uid was accepted.
func (p *Pending) AddDeleted(uid string) {
	if p.deleted == nil {
		p.deleted = map[string]bool{}
	}
	p.deleted[uid] = true
}

// Remove records that the Machine with that uid does not exist any more.
func (p *Pending) Remove(uid string) {
	delete(p.created, uid)
	delete(p.deleted, uid)
}

// View returns the set's Machines: the cached ones, and those noted that are not among them; and
// those whose deletion is noted as being deleted. It forgets what the cache shows by now. If
// nothing is noted, it returns cached itself.
func (p *Pending) View(cached []Machine) []Machine {
	if p.IsSettled() {
		return cached
	}
	view := slices.Clone(cached)
	seen := map[string]bool{}
	for i, m := range view {
		seen[m.UID] = true
		delete(p.created, m.UID)
		if m.Deleting {
			delete(p.deleted, m.UID)
		}
		view[i].Deleting = m.Deleting || p.deleted[m.UID]
	}
	for _, uid := range slices.Sorted(maps.Keys(p.created)) {
		m := p.created[uid]
		m.Deleting = m.Deleting || p.deleted[uid]
		view = append(view, m)
		seen[uid] = true
	}
	// What was seen and is no longer is gone; so is its deletion.
	maps.DeleteFunc(p.deleted, func(uid string, _ bool) bool { return !seen[uid] })
	if p.IsSettled() {
		// An empty map keeps the memory of all that was ever in it.
		p.created, p.deleted = nil, nil
	}
	return view
}

// Unseen returns the noted Machines that the last View's cache did not have, in the order of their
// uids.
func (p *Pending) Unseen() []Machine {
	var unseen []Machine
	for _, uid := range slices.Sorted(maps.Keys(p.created)) {
		unseen = append(unseen, p.created[uid])
	}
	return unseen
}

// IsSettled says whether the last View's cache showed everything noted.
func (p *Pending) IsSettled() bool { return len(p.created) == 0 && len(p.deleted) == 0 }
