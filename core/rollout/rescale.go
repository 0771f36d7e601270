package rollout

import (
	"cmp"
	"slices"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// rescale follows a change of the deployment's size. A set notes the size that it was last scaled
// for, so that a change shows until it has reached every set that has machines, also when applying
// a plan was cut short.
//
// While a rollout is under way, sets grow and shrink in proportion, so that scaling neither hurries
// the rollout nor holds it up; what growing leaves over is the new set's, by roll. Without a
// rollout the new set takes it all.
func rescale(s State) []Action {
	due := s.newSet().Desired > s.Replicas
	for i := range s.Sets {
		due = due || s.stale(&s.Sets[i])
	}
	if !due {
		return nil
	}
	var actions []Action
	for _, c := range s.resize() {
		if c.to != c.set.Desired || s.stale(c.set) {
			actions = append(actions, ScaleSet{Name: c.set.Name, From: c.set.Desired, To: c.to, Reason: Scaling})
		}
	}
	return actions
}

// stale says that set was last scaled for another size of the deployment.
func (s State) stale(set *Set) bool {
	return set.Desired > 0 && set.PlannedFor.Replicas != s.Replicas
}

// resize returns every set with the size that is its share.
func (s State) resize() []sized {
	sizes := make([]sized, len(s.Sets))
	total, rolling := int32(0), false
	for i := range s.Sets {
		set := &s.Sets[i]
		sizes[i] = sized{set, set.Desired}
		total += set.Desired
		rolling = rolling || !set.New && set.Desired > 0
	}
	ours := fresh(sizes)
	switch {
	case !rolling:
		ours.to = min(max(ours.to, s.room()), s.Replicas)
	case total > s.max() || ours.to >= s.Replicas:
		s.shrink(sizes)
	default:
		s.grow(sizes)
	}
	return sizes
}

// fresh is the new set's entry.
func fresh(sizes []sized) *sized {
	return &sizes[slices.IndexFunc(sizes, func(c sized) bool { return c.set.New })]
}

// grow gives each set that was scaled for another size its share of the present one, rounded to the
// nearest, the largest set first, while there is room. A set that has its share already, because
// only a part of the last plan was applied, gets nothing twice. Where old machines are replaced
// only when they are deleted, none is added to them.
func (s State) grow(sizes []sized) {
	room := s.max()
	for _, c := range sizes {
		room -= c.set.holds()
	}
	bySize := slices.Clone(sizes)
	slices.SortStableFunc(bySize, func(a, b sized) int { return cmp.Compare(b.to, a.to) })
	for _, c := range bySize {
		if !s.stale(c.set) || c.set.PlannedFor.Max <= 0 || !c.set.New && s.Strategy == clusterv1alpha1.OnDeleteStrategy {
			continue
		}
		most := s.Replicas - c.to
		if !c.set.New {
			most = room
		}
		add := max(min(s.share(c.set)-c.to, room, most), 0)
		room -= add
		i := slices.IndexFunc(sizes, func(x sized) bool { return x.set == c.set })
		sizes[i].to += add
	}
}

// share is set's part of what the deployment may have now, if it had its part of what the
// deployment might have then.
func (s State) share(set *Set) int32 {
	then, now := int64(set.PlannedFor.Max), int64(s.max())
	return int32((2*int64(set.Desired)*now + then) / (2 * then))
}

// shrink takes numbers from sizes, one at a time, until there are no more than there may be and the
// new set is no larger than the deployment. It takes what costs least, wherever that is, and among
// equals from the set that has most above its share.
func (s State) shrink(sizes []sized) {
	left := newLoss(s, sizes)
	for left.total > left.limit || fresh(sizes).to > s.Replicas {
		left.take(left.next())
	}
}

// loss is a shrinking in progress.
type loss struct {
	sizes []sized
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

func newLoss(s State, sizes []sized) *loss {
	l := &loss{sizes: sizes, limit: s.max(), replicas: s.Replicas, over: -s.floor()}
	for _, c := range sizes {
		l.desired = append(l.desired, c.to)
		l.total += c.to
		l.victims = append(l.victims, inScalingOrder(c.set.Machines))
		if c.set.New {
			l.over += c.set.available()
			continue
		}
		l.over += c.to
	}
	l.was = l.total
	return l
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
func (l *loss) next() int {
	best := -1
	mustBeNew := fresh(l.sizes).to > l.replicas
	for i := range l.sizes {
		if l.sizes[i].to == 0 || mustBeNew && !l.sizes[i].set.New {
			continue
		}
		if best < 0 || l.before(i, best) {
			best = i
		}
	}
	return best
}

// before says that it is better to take from set i than from set j.
func (l *loss) before(i, j int) bool {
	return cmp.Or(
		cmp.Compare(l.cost(i), l.cost(j)),
		cmp.Compare(l.excess(j), l.excess(i)),
		cmp.Compare(l.sizes[j].to, l.sizes[i].to),
	) < 0
}

// excess is how far set i is above its share of the limit, in units of 1/was.
func (l *loss) excess(i int) int64 {
	return int64(l.sizes[i].to)*int64(l.was) - int64(l.desired[i])*int64(l.limit)
}

// What taking one from a set costs, the cheapest first: a number without a machine that stays, a
// machine somebody chose, one that is not available, one that is, and an old machine, available or
// not, that the floor needs.
const (
	costsNothing = iota
	costsMarked
	costsUnavailable
	costsAvailable
	costsFloor
)

func (l *loss) cost(i int) int {
	victim, ok := l.victim(i)
	switch {
	case ok && victim.Marked:
		return costsMarked
	case !l.sizes[i].set.New && l.over <= 0:
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
func (l *loss) victim(i int) (Machine, bool) {
	n := len(l.victims[i]) - int(l.sizes[i].to)
	if n < 0 {
		return Machine{}, false
	}
	return l.victims[i][n], true
}

func (l *loss) take(i int) {
	victim, ok := l.victim(i)
	if !l.sizes[i].set.New || ok && victim.Available {
		l.over--
	}
	l.sizes[i].to--
	l.total--
}
