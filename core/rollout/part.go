package rollout

import clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"

// Part is what a set's machines are in a rollout that goes on, in the words of the annotation that
// tells them.
type Part string

const (
	// NoPart: no rollout goes on, or the set has no machines to be replaced.
	NoPart Part = ""
	// Outdated: the set's machines are being replaced.
	Outdated Part = clusterv1alpha1.RolloutOutdated
	// Current: the set's machines replace others.
	Current Part = clusterv1alpha1.RolloutCurrent
	// Dwindling: the set's machines are replaced by others when somebody deletes them; the set
	// makes none.
	Dwindling Part = clusterv1alpha1.RolloutDwindling
)

// Part returns the part of a set, or of the set yet to be made, which is New and nothing else. A
// rollout goes on for as long as an old set holds machines. That can be told from what there is, so
// that a part is given and taken away again whatever happened in between. Only of a paused
// deployment whose template has no set yet it cannot be told whether it was in a rollout before:
// there, sets keep the part that they have.
//
// With OnDelete a rollout may take as long as its users like: nobody is to avoid the Nodes
// meanwhile. While it is paused, sets replace their own machines.
func (s State) Part(set *Set) Part {
	onDelete := s.Strategy == clusterv1alpha1.OnDeleteStrategy
	switch {
	case s.Paused && onDelete:
		return NoPart
	case s.Paused && s.newSet() == nil:
		return set.Part
	case !set.New && set.holds() > 0 && onDelete:
		return Dwindling
	case !set.New && set.holds() > 0:
		return Outdated
	case set.New && s.Rolling() && !onDelete:
		return Current
	default:
		return NoPart
	}
}

// Rolling says whether an old set holds machines.
func (s State) Rolling() bool { return s.heldByOld() > 0 }
