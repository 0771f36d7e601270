package rollout

// recreate shuts all old sets down, and fills the new one when their last machine is gone. A new
// set that has machines already, since the strategy was another one a moment ago, keeps them.
func recreate(s State) []Action {
	var actions []Action
	for i := range s.Sets {
		if set := &s.Sets[i]; !set.New && set.Desired > 0 {
			actions = append(actions, ScaleSet{Name: set.Name, From: set.Desired, To: 0, Reason: Rolling})
		}
	}
	fresh := s.newSet()
	to := min(max(fresh.Desired, s.room()), s.Replicas)
	switch {
	case s.stale(fresh) || to < fresh.Desired:
		actions = append(actions, ScaleSet{Name: fresh.Name, From: fresh.Desired, To: to, Reason: Scaling})
	case to > fresh.Desired:
		actions = append(actions, ScaleSet{Name: fresh.Name, From: fresh.Desired, To: to, Reason: Rolling})
	}
	return actions
}

// follow takes from old sets the machines that somebody has deleted, and lets the new set make as
// many once they are gone.
func follow(s State) []Action {
	var actions []Action
	fresh := s.newSet()
	if to := s.room(); to > fresh.Desired {
		actions = append(actions, ScaleSet{Name: fresh.Name, From: fresh.Desired, To: to, Reason: Rolling})
	}
	for i := range s.Sets {
		if set := &s.Sets[i]; !set.New && set.live() < set.Desired {
			actions = append(actions, ScaleSet{Name: set.Name, From: set.Desired, To: set.live(), Reason: Rolling})
		}
	}
	return actions
}
