package rollout

import clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"

// Part is what a set's machines are in a rollout that goes on, in the words of the annotation that tells them.
type Part string

const (
	// NoPart: no rollout goes on, or the set has no machines to be replaced.
	NoPart Part = ""
	// Outdated: the set's machines are being replaced.
	Outdated Part = clusterv1alpha1.RolloutOutdated
	// Current: the set's machines replace others.
	Current Part = clusterv1alpha1.RolloutCurrent
)

// Part returns the part of a set, or of the set yet to be made, which is New and nothing else. A rollout goes on for as
// long as an old set holds machines. That can be told from what there is, so that a part is given and taken away again
// whatever happened in between.
func (s State) Part(set *Set) Part {
	rolling := false
	for i := range s.Sets {
		rolling = rolling || !s.Sets[i].New && s.Sets[i].holds() > 0
	}
	switch {
	case rolling && set.New:
		return Current
	case !set.New && set.holds() > 0:
		return Outdated
	default:
		return NoPart
	}
}
