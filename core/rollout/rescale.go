package rollout

import (
	"cmp"
	"slices"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// rescale follows a change of the deployment's size. A set notes the size that it was last scaled
// for. So a change shows until it has reached every set that has machines, also when applying a
// plan was cut short.
//
// While a rollout is under way, sets grow and shrink in proportion, so that scaling neither hurries
// the rollout nor holds it up. What growing leaves over, the next step of the rollout gives to the
// new set. Without a rollout the new set takes it all.
func rescale(s State) []Action {
	due := s.newSet().Desired > s.Replicas
	for i := range s.Sets {
		due = due || s.isStale(&s.Sets[i])
	}
	if !due {
		return nil
	}
	var actions []Action
	for _, c := range s.resize() {
		if c.to != c.set.Desired || s.isStale(c.set) {
			actions = append(actions, ScaleSet{Name: c.set.Name, From: c.set.Desired, To: c.to, Reason: Scaling})
		}
	}
	return actions
}

// isStale says whether set was last scaled for another size of the deployment.
func (s State) isStale(set *Set) bool {
	return set.Desired > 0 && set.PlannedFor.Replicas != s.Replicas
}

// resize returns every set with the size that is its share.
func (s State) resize() []resized {
	sizes := make([]resized, len(s.Sets))
	total, rolling := int32(0), false
	for i := range s.Sets {
		set := &s.Sets[i]
		sizes[i] = resized{set, set.Desired}
		total += set.Desired
		rolling = rolling || !set.New && set.Desired > 0
	}
	own := newSetIn(sizes)
	switch {
	case !rolling:
		own.to = min(max(own.to, s.room()), s.Replicas)
	case total > s.max() || own.to >= s.Replicas:
		s.shrink(sizes)
	default:
		s.grow(sizes)
	}
	return sizes
}

// newSetIn returns the new set's entry.
func newSetIn(sizes []resized) *resized {
	return &sizes[slices.IndexFunc(sizes, func(c resized) bool { return c.set.New })]
}

// grow gives each set that was scaled for another size its share of the present one, rounded to the
// nearest. The largest set comes first. The others follow while there is room. A set that has
// its share already, because only a part of the last plan was applied, gets nothing twice.
// Where old machines are replaced only when they are deleted, none is added to them.
func (s State) grow(sizes []resized) {
	room := s.max()
	for _, c := range sizes {
		room -= c.set.holds()
	}
	bySize := slices.Clone(sizes)
	slices.SortStableFunc(bySize, func(a, b resized) int { return cmp.Compare(b.to, a.to) })
	for _, c := range bySize {
		if !s.isStale(c.set) || c.set.PlannedFor.Max <= 0 || !c.set.New && s.Strategy == clusterv1alpha1.OnDeleteStrategy {
			continue
		}
		most := s.Replicas - c.to
		if !c.set.New {
			most = room
		}
		add := max(min(s.share(c.set)-c.to, room, most), 0)
		room -= add
		i := slices.IndexFunc(sizes, func(x resized) bool { return x.set == c.set })
		sizes[i].to += add
	}
}

// share is the set's proportional part of what the deployment may have now. The set's size is its
// part of what the deployment might have when the set was last scaled.
func (s State) share(set *Set) int32 {
	then, now := int64(set.PlannedFor.Max), int64(s.max())
	return int32((2*int64(set.Desired)*now + then) / (2 * then))
}

// shrink lowers sizes, by one at a time. It ends when all together are no more than there may
// be and the new set is no larger than the deployment. It takes what costs least, in whichever
// set that is. Among equals it takes from the set that is furthest above its share.
func (s State) shrink(sizes []resized) {
	left := newReduction(s, sizes)
	for left.total > left.limit || newSetIn(sizes).to > s.Replicas {
		left.take(left.next())
	}
}

// reduction lowers sizes one number at a time.
type reduction struct {
	sizes []resized
	// victims of each set, in the order in which it gives them up.
	victims [][]Machine
	// desired is what each set had, was their sum.
	desired    []int32
	was, total int32
	limit      int32
	replicas   int32
	// over is how far available machines of the new set and desired ones of the old are above the
	// floor.
	over int32
}

func newReduction(s State, sizes []resized) *reduction {
	r := &reduction{sizes: sizes, limit: s.max(), replicas: s.Replicas, over: -s.floor()}
	for _, c := range sizes {
		r.desired = append(r.desired, c.to)
		r.total += c.to
		r.victims = append(r.victims, inScalingOrder(c.set.Machines))
		if c.set.New {
			r.over += c.set.available()
			continue
		}
		r.over += c.to
	}
	r.was = r.total
	return r
}

// inScalingOrder sorts machines as a set gives them up for reason Scaling: marked ones first, and
// of each kind the unavailable first.
func inScalingOrder(machines []Machine) []Machine {
	sorted := slices.Clone(machines)
	slices.SortFunc(sorted, func(a, b Machine) int {
		return cmp.Or(cmp.Compare(b2i(b.Marked), b2i(a.Marked)), cmp.Compare(b2i(a.Available), b2i(b.Available)))
	})
	return sorted
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// next is the set to take from. A new set that is larger than the deployment comes before all
// others.
func (r *reduction) next() int {
	best := -1
	mustBeNew := newSetIn(r.sizes).to > r.replicas
	for i := range r.sizes {
		if r.sizes[i].to == 0 || mustBeNew && !r.sizes[i].set.New {
			continue
		}
		if best < 0 || r.isCheaper(i, best) {
			best = i
		}
	}
	return best
}

// isCheaper says whether it is better to take from set i than from set j.
func (r *reduction) isCheaper(i, j int) bool {
	return cmp.Or(
		cmp.Compare(r.cost(i), r.cost(j)),
		cmp.Compare(r.excess(j), r.excess(i)),
		cmp.Compare(r.sizes[j].to, r.sizes[i].to),
	) < 0
}

// excess is how far set i is above its share of the limit, in units of 1/was.
func (r *reduction) excess(i int) int64 {
	return int64(r.sizes[i].to)*int64(r.was) - int64(r.desired[i])*int64(r.limit)
}

// What it costs to lower a set's size by one, the cheapest first.
const (
	// No machine, since the set has fewer than its size.
	costsNothing = iota
	// A machine that somebody chose.
	costsMarked
	// One that is not available.
	costsUnavailable
	// One that is.
	costsAvailable
	// An old machine, available or not, that the floor needs.
	costsFloor
)

func (r *reduction) cost(i int) int {
	victim, ok := r.victim(i)
	switch {
	case ok && victim.Marked:
		return costsMarked
	case !r.sizes[i].set.New && r.over <= 0:
		return costsFloor
	case !ok:
		return costsNothing
	case !victim.Available:
		return costsUnavailable
	default:
		return costsAvailable
	}
}

// victim is the machine that set i gives up next, if it has one for each number.
func (r *reduction) victim(i int) (Machine, bool) {
	n := len(r.victims[i]) - int(r.sizes[i].to)
	if n < 0 {
		return Machine{}, false
	}
	return r.victims[i][n], true
}

func (r *reduction) take(i int) {
	victim, ok := r.victim(i)
	if !r.sizes[i].set.New || ok && victim.Available {
		r.over--
	}
	r.sizes[i].to--
	r.total--
}
