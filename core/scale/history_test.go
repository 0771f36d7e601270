package scale

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// server is an API server that holds the Machines of one set.
type server struct {
	machines map[string]*Machine
	// made counts how often a name was created.
	made map[string]int
	uids int
	// next is what was persisted.
	next int64
	// lost are names of requests whose answer was lost: carried out, not carried out, or yet to be.
	// True means the last.
	lost map[string]bool
}

func (s *server) list() []Machine {
	var all []Machine
	for _, m := range s.machines {
		all = append(all, *m)
	}
	return all
}

// post creates the Machine; false means AlreadyExists.
func (s *server) post(name string) bool {
	if s.machines[name] != nil {
		return false
	}
	s.uids++
	s.made[name]++
	s.machines[name] = &Machine{Name: name, UID: string(rune('a' + s.uids))}
	return true
}

// possible counts the Machines that there are, and those that, for all the controller can know,
// a lost request may yet make. It also counts those of them that stay.
func (s *server) possible() (all, staying int) {
	for _, m := range s.machines {
		all++
		if !m.Deleting {
			staying++
		}
	}
	for name := range s.lost {
		if s.machines[name] == nil && s.made[name] == 0 {
			all++
			staying++
		}
	}
	return all, staying
}

// controller is one process that reconciles the set.
type controller struct {
	names   *Names
	pending Pending
	cache   []Machine
	// fresh: it has to list the Machines live before it creates any, since it has just started or
	// an answer was lost.
	fresh bool
}

func newController(s *server, cache []Machine) *controller {
	return &controller{names: NewNames("set", "uid", s.next), cache: cache, fresh: true}
}

// history is a generated story of one set.
type history struct {
	*rapid.T
	*server
	*controller
	desired, spare int
	// spares: how many there are to spare changes; else there are none.
	spares bool
	// ceiling is desired and spare, and most desired, but for what there was when they were
	// lowered.
	ceiling, most int
}

func (h *history) state(machines []Machine) State {
	return State{Desired: h.desired, Spare: h.spare, Machines: machines}
}

func (h *history) check() {
	all, staying := h.possible()
	h.ceiling, h.most = max(h.desired+h.spare, min(h.ceiling, all)), max(h.desired, min(h.most, staying))
	if all > h.ceiling || staying > h.most {
		h.Fatalf("%d machines are there or on their way, %d to stay; %d should be, %d more may", all, staying, h.desired, h.spare)
	}
	for name, n := range h.made {
		if n > 1 {
			h.Fatalf("%s was created %d times", name, n)
		}
	}
}

// reconcile is what the controller of MachineSets does; it may crash before the status is written.
func (h *history) reconcile() {
	if h.fresh {
		for _, m := range h.list() {
			h.names.MarkCreated(m.Name)
			if !slices.ContainsFunc(h.cache, func(c Machine) bool { return c.UID == m.UID }) {
				h.pending.AddCreated(m)
			}
		}
		h.fresh = false
	}
	view := h.pending.View(h.cache)
	for _, m := range view {
		h.names.MarkCreated(m.Name)
	}
	d := Decide(h.state(view))
	if len(d.Delete) > 0 {
		h.shrink()
	}
	h.create(d.Create)
	if rapid.IntRange(0, 3).Draw(h.T, "crashes before the status") == 3 {
		h.crash()
		return
	}
	h.next = max(h.next, h.names.Next())
}

func (h *history) shrink() {
	chosen := Decide(h.state(h.list())).Delete
	for _, m := range chosen {
		h.machines[m.Name].Deleting = true
		h.pending.AddDeleted(m.UID)
	}
	staying := 0
	for _, m := range h.machines {
		if !m.Deleting {
			staying++
		}
	}
	if len(chosen) > 0 && staying != h.desired {
		h.Fatalf("%d of %d stay", staying, h.desired)
	}
}

func (h *history) create(count int) {
	for _, name := range h.names.Take(count) {
		switch rapid.SampledFrom([]string{"ok", "ok", "lost after", "lost before", "in flight", "refused"}).Draw(h.T, "answer") {
		case "ok":
			h.post(name)
			delete(h.lost, name)
			h.names.MarkCreated(name)
			h.pending.AddCreated(*h.machines[name])
		case "lost after":
			h.post(name)
			h.lose(name)
		case "lost before":
			h.lose(name)
		case "in flight":
			h.lost[name] = true
			h.fresh = true
		case "refused":
			h.refuse(name)
		}
		h.check()
	}
}

// lose notes that nobody knows what became of the request. One that was sent before may still be
// under way.
func (h *history) lose(name string) {
	if _, ok := h.lost[name]; !ok {
		h.lost[name] = false
	}
	h.fresh = true
}

// crash ends the process: its requests in flight are carried out now or never. The successor's
// cache may be as old as its predecessor's.
func (h *history) crash() {
	for _, name := range slices.Sorted(maps.Keys(h.lost)) {
		if h.lost[name] && rapid.Bool().Draw(h.T, "carried out") {
			h.post(name)
		}
		delete(h.lost, name)
	}
	h.controller = newController(h.server, h.cache)
}

func (h *history) step() {
	names := make([]string, 0, len(h.machines))
	for name := range h.machines {
		names = append(names, name)
	}
	slices.Sort(names)
	switch rapid.SampledFrom([]string{
		"reconcile", "cache", "desired", "delete", "gone", "reconcile", "land", "look up", "crash", "spare",
	}).Draw(h.T, "step") {
	case "reconcile":
		h.reconcile()
	case "cache":
		h.cache = h.list()
	case "desired":
		h.desired = rapid.SampledFrom([]int{3, 2, 5, 1, 0}).Draw(h.T, "desired")
	case "spare":
		if h.spares {
			h.spare = rapid.IntRange(0, 2).Draw(h.T, "to spare")
		}
	case "crash":
		h.crash()
	case "delete":
		if len(names) > 0 {
			h.machines[rapid.SampledFrom(names).Draw(h.T, "deleted")].Deleting = true
		}
	case "gone":
		for _, name := range names {
			if h.machines[name].Deleting && IsDecided("set", "uid", name, h.next) {
				delete(h.machines, name)
				// No request is under way for longer than it takes to repeat it, notice the Machine
				// and delete it.
				delete(h.lost, name)
			}
		}
	case "land":
		for _, name := range slices.Sorted(maps.Keys(h.lost)) {
			if h.lost[name] && rapid.Bool().Draw(h.T, "lands") {
				h.post(name)
			}
			h.lost[name] = false
		}
	case "look up":
		h.lookUpUnseen()
		for _, name := range h.names.Take(3) {
			h.refuse(name)
		}
	}
	h.check()
}

// refuse lets the controller learn for sure that there is no Machine of that name, nor a request
// that may make one.
func (h *history) refuse(name string) {
	if !h.lost[name] && h.machines[name] == nil {
		h.names.MarkRefused(name)
		delete(h.lost, name)
	}
}

// lookUpUnseen asks the server for what the cache does not show.
func (h *history) lookUpUnseen() {
	for _, m := range h.pending.Unseen() {
		if h.machines[m.Name] == nil {
			h.pending.Remove(m.UID)
		}
	}
}

// Over any history of crashes, lost answers, stale caches and changes of mind, there is never a
// Machine more than there should be. No name comes twice. Never is a Machine too many deleted.
// In the end there are as many as there should be.
func TestNeverOneTooMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { drawHistory(t, false) })
}

// The same, while there are sometimes Machines to spare: never more than with these there may be,
// and of those that stay never more than there should be.
func TestNeverOneTooManyWithSomeToSpare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { drawHistory(t, true) })
}

func drawHistory(t *rapid.T, spares bool) {
	s := &server{machines: map[string]*Machine{}, made: map[string]int{}, lost: map[string]bool{}}
	h := &history{T: t, server: s, controller: newController(s, nil), desired: 3, spares: spares}
	for range rapid.IntRange(5, 40).Draw(t, "steps") {
		h.step()
	}
	h.settle()
}

// settle lets the controller work undisturbed until there is nothing left to do.
func (h *history) settle() {
	for range 5 {
		h.cache = h.list()
		clear(h.lost)
		h.lookUpUnseen()
		view := h.pending.View(h.cache)
		if !h.pending.IsSettled() {
			h.Fatalf("%v unseen in a current cache of %v", h.pending.Unseen(), view)
		}
		d := Decide(h.state(view))
		for _, m := range d.Delete {
			h.machines[m.Name].Deleting = true
		}
		for _, m := range view {
			h.names.MarkCreated(m.Name)
		}
		for _, name := range h.names.Take(d.Create) {
			h.post(name)
			h.names.MarkCreated(name)
		}
		for _, name := range h.names.Take(3) {
			h.names.MarkRefused(name)
		}
		h.next = max(h.next, h.names.Next())
		h.check()
		for name, m := range h.machines {
			if m.Deleting && IsDecided("set", "uid", name, h.next) {
				delete(h.machines, name)
			}
		}
	}
	if len(h.machines) != h.desired {
		h.Fatalf("%d machines in the end, %d wanted", len(h.machines), h.desired)
	}
}
