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
	newSet := s.newSet()
	to := min(max(newSet.Desired, s.room()), s.Replicas)
	switch {
	case s.isStale(newSet) || to < newSet.Desired:
		actions = append(actions, ScaleSet{Name: newSet.Name, From: newSet.Desired, To: to, Reason: Scaling})
	case to > newSet.Desired:
		actions = append(actions, ScaleSet{Name: newSet.Name, From: newSet.Desired, To: to, Reason: Rolling})
	}
	return actions
}

// replaceDeleted takes from old sets the machines that somebody has deleted, and lets the new set
// make as many once they are gone.
func replaceDeleted(s State) []Action {
	var actions []Action
	newSet := s.newSet()
	if to := s.room(); to > newSet.Desired {
		actions = append(actions, ScaleSet{Name: newSet.Name, From: newSet.Desired, To: to, Reason: Rolling})
	}
	for i := range s.Sets {
		if set := &s.Sets[i]; !set.New && set.live() < set.Desired {
			actions = append(actions, ScaleSet{Name: set.Name, From: set.Desired, To: set.live(), Reason: Rolling})
		}
	}
	return actions
}
