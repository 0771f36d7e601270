package rollout

import clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"

// Plan returns what to do next, or, if there is nothing to do now, what is waited for. Planning
// again before the actions are applied returns the same actions, and before they are observed none.
func Plan(s State) ([]Action, Wait) {
	s = s.sorted()
	for i := range s.Sets {
		if set := &s.Sets[i]; !set.isSettled() {
			return nil, Wait{For: Observation, Set: set.Name}
		}
	}
	if s.Paused {
		if actions := s.whilePaused(); len(actions) > 0 {
			return actions, Wait{For: Nothing}
		}
		return nil, Wait{For: Resumption}
	}
	if s.newSet() == nil {
		return []Action{CreateSet{Replicas: s.room()}}, Wait{For: Nothing}
	}
	for _, step := range s.steps() {
		if actions := step(s); len(actions) > 0 {
			return actions, Wait{For: Nothing}
		}
	}
	return nil, s.wait()
}

// steps are what the strategy does, in this order; the next is taken only when there is nothing to
// do in those before.
func (s State) steps() []func(State) []Action {
	switch s.Strategy {
	case clusterv1alpha1.RecreateStrategy:
		return []func(State) []Action{recreate, prune}
	case clusterv1alpha1.OnDeleteStrategy:
		return []func(State) []Action{rescale, replaceDeleted, prune}
	default:
		return []func(State) []Action{rescale, updateRolling, prune}
	}
}

// updateRolling replaces machines of old sets by machines of the new one, as far as the limits
// allow now.
func updateRolling(s State) []Action {
	var actions []Action
	newSet := s.newSet()
	if to := s.room(); to > newSet.Desired {
		actions = append(actions, ScaleSet{Name: newSet.Name, From: newSet.Desired, To: to, Reason: Rolling})
	}
	for _, c := range s.shrinkOldSets() {
		if c.to < c.set.Desired {
			actions = append(actions, ScaleSet{Name: c.set.Name, From: c.set.Desired, To: c.to, Reason: Rolling})
		}
	}
	return actions
}

// room is how large the new set may be. To recreate, that is all or nothing.
func (s State) room() int32 {
	if s.Strategy == clusterv1alpha1.RecreateStrategy && s.IsRolling() {
		return 0
	}
	return s.free()
}

// free is what old sets leave to the new one: what they hold is not there for it.
func (s State) free() int32 {
	return max(min(s.max()-s.heldByOld(), s.Replicas), 0)
}

// heldByOld is how many machines the old sets hold.
func (s State) heldByOld() int32 {
	held := int32(0)
	for i := range s.Sets {
		if !s.Sets[i].New {
			held += s.Sets[i].holds()
		}
	}
	return held
}

// resized is a set and the size it is to get.
type resized struct {
	set *Set
	to  int32
}

// shrinkOldSets lowers the old sets so that available machines of the new set and desired ones of
// the old together stay at the floor. First go, from the oldest set on, those that are not
// available: machines, and numbers without a machine. Only when no such is left do available ones
// go, so that what is left over the floor is then all available.
func (s State) shrinkOldSets() []resized {
	var old []resized
	over := -s.floor()
	for i := range s.Sets {
		set := &s.Sets[i]
		if set.New {
			over += set.available()
			continue
		}
		over += set.Desired
		old = append(old, resized{set, set.Desired})
	}
	for _, least := range []func(*Set) int32{(*Set).available, func(*Set) int32 { return 0 }} {
		for i := range old {
			n := max(min(over, old[i].to-least(old[i].set)), 0)
			old[i].to -= n
			over -= n
		}
	}
	return old
}

// prune drops the oldest empty sets beyond the history limit once a rollout is complete; before,
// its user may want to go back.
func prune(s State) []Action {
	if !s.isComplete() {
		return nil
	}
	var actions []Action
	surplus := len(s.Sets) - 1 - int(s.HistoryLimit)
	for i := range s.Sets {
		if s.Sets[i].New || len(actions) >= surplus {
			continue
		}
		actions = append(actions, DeleteSet{Name: s.Sets[i].Name})
	}
	return actions
}

// isComplete says whether all machines there are belong to the new set, which has as many as it
// should, all available.
func (s State) isComplete() bool {
	if s.newSet() == nil {
		return false
	}
	for i := range s.Sets {
		set := &s.Sets[i]
		if set.New && (set.Desired != s.Replicas || set.Present != s.Replicas || set.available() != s.Replicas) {
			return false
		}
		if !set.New && set.holds() > 0 {
			return false
		}
	}
	return true
}

// wait says what the sets, all of them settled, have yet to do.
func (s State) wait() Wait {
	newSet := s.newSet()
	if n := newSet.Desired - newSet.Present; n > 0 {
		return Wait{For: Creation, Set: newSet.Name, Machines: n}
	}
	if n := newSet.live() - newSet.available(); n > 0 {
		return Wait{For: Availability, Set: newSet.Name, Machines: n}
	}
	for i := range s.Sets {
		set := &s.Sets[i]
		if n := set.Present - set.live(); n > 0 {
			return Wait{For: Deletion, Set: set.Name, Machines: n}
		}
	}
	for i := range s.Sets {
		if set := &s.Sets[i]; !set.New && set.live() > 0 {
			return Wait{For: Request, Set: set.Name, Machines: set.live()}
		}
	}
	return Wait{For: Nothing}
}
