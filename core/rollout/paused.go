package rollout

import "slices"

// whilePaused follows a change of the deployment's size, and drops what a rollout that was complete
// before has left over. The mix of templates stays as it is, but for rounding.
func (s State) whilePaused() []Action {
	if len(s.Sets) == 0 {
		return nil
	}
	scaled := s.withStandIn()
	for _, step := range []func(State) []Action{rescale, refill} {
		if actions := step(scaled); len(actions) > 0 {
			return actions
		}
	}
	return prune(s)
}

// withStandIn returns s with one set that takes the part of the new one in scaling. That is the
// new one itself if it has machines, else the newest that has. The reason is that a template
// that was not rolled out yet is not what is to grow.
func (s State) withStandIn() State {
	s.Sets = slices.Clone(s.Sets)
	best := 0
	for i := range s.Sets {
		if s.Sets[i].rank() >= s.Sets[best].rank() {
			best = i
		}
	}
	for i := range s.Sets {
		s.Sets[i].New = i == best
	}
	return s
}

// rank orders sets, of which the oldest stands first, by how well they stand in for the new one.
func (s *Set) rank() int {
	return 2*b2i(s.Desired > 0) + b2i(s.New)
}

// refill gives the stand-in what an earlier scaling could give to no set, since there was no room
// then. If no other set is to have machines, the stand-in gets all that is missing, else what is
// missing from the floor. A rollout that is paused has left the floor whole. So a pause alone
// refills nothing, unless all old machines had already been told to go.
func refill(s State) []Action {
	standIn, total, target, room := s.newSet(), int32(0), s.Replicas, s.room()
	for i := range s.Sets {
		total += s.Sets[i].Desired
		if !s.Sets[i].New && s.Sets[i].Desired > 0 {
			target, room = s.floor(), s.free()
		}
	}
	to := min(standIn.Desired+target-total, room)
	if to <= standIn.Desired {
		return nil
	}
	return []Action{ScaleSet{Name: standIn.Name, From: standIn.Desired, To: to, Reason: Scaling}}
}
