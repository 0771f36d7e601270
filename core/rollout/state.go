package rollout

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// State is all that Plan looks at. The order of Sets, and of machines within a set, means nothing.
type State struct {
	// Replicas is how many machines the deployment should have.
	Replicas int32
	// Strategy says how machines of old sets are replaced. The zero value is RollingUpdate.
	Strategy clusterv1alpha1.MachineDeploymentStrategyType
	// Limits bound the way there; see Resolve. They are those of a rolling update: with another
	// strategy there is no surge, and their zero value is right.
	Limits Limits
	// Paused says that no machine is to be replaced, and no set to be made, until it is false
	// again.
	Paused bool
	// HistoryLimit is how many empty old sets are kept, so that their templates can be returned to.
	HistoryLimit int32
	// Sets are the deployment's sets. At most one is New.
	Sets []Set
}

// Set is one MachineSet of the deployment.
type Set struct {
	Name string
	// New says that the set's template is the deployment's; all other sets are old.
	New bool
	// Revision grows with each new template. Among old sets the lowest gives up its machines first.
	Revision int64
	// Desired is the set's spec.replicas.
	Desired int32
	// Present counts the set's machines, those being deleted included. Where sources differ it is
	// the largest.
	Present int32
	// Observed says that the set's controller has acted on the set's present spec, and that
	// Machines shows the result.
	Observed bool
	// Machines are those that are not being deleted.
	Machines []Machine
	// PlannedFor is the deployment's size when the set was last scaled; the zero value means that
	// nobody knows.
	PlannedFor Size
	// Part is what the set says of itself now.
	Part Part
}

// Machine is a machine that is not being deleted.
type Machine struct {
	// Available: ready for long enough to count.
	Available bool
	// Marked: somebody asked for this one to go first when there are to be fewer.
	Marked bool
}

// Size is what a deployment may have.
type Size struct {
	// Replicas is spec.replicas.
	Replicas int32
	// Max is Replicas and the surge on top.
	Max int32
}

// max is how many machines there may be.
func (s State) max() int32 { return s.Replicas + s.Limits.MaxSurge }

// floor is how many machines have to be available.
func (s State) floor() int32 { return s.Replicas - s.Limits.MaxUnavailable }

// Action is one of CreateSet, ScaleSet and DeleteSet. Applying only some of the actions of a plan,
// in whatever order, is as safe as applying all.
type Action interface{ action() }

// CreateSet makes the set for the deployment's template.
type CreateSet struct {
	// Replicas is the new set's size.
	Replicas int32
}

// ScaleSet changes the size of a set, and notes on it the deployment's size. From and To are equal
// where there is only that to note.
type ScaleSet struct {
	Name string
	// From is the size that the plan is based on. If the set has another by now, the plan is void.
	From, To int32
	// Reason decides which machines the set gives up.
	Reason Reason
}

// DeleteSet drops an old set that has no machines.
type DeleteSet struct{ Name string }

func (CreateSet) action() {}
func (ScaleSet) action()  {}
func (DeleteSet) action() {}

// Reason says why a set is scaled, in the words of the annotation that tells the set.
type Reason string

const (
	// Scaling: the deployment's size has changed. The set gives up marked machines first, since
	// whoever lowered the size may have chosen them.
	Scaling Reason = clusterv1alpha1.ScalingReasonScaling
	// Rolling: machines of an old template make room for new ones. The set gives up unavailable
	// machines first, marked or not: the plan counts on it.
	Rolling Reason = clusterv1alpha1.ScalingReasonRolling
)

// Wait says what a plan without actions waits for, and of which set.
type Wait struct {
	For WaitFor
	// Set that is waited for; empty for Nothing.
	Set string
	// Machines is how many machines of that set are waited for; 0 for Nothing and Observation.
	Machines int32
}

// WaitFor is what is waited for.
type WaitFor string

const (
	// Nothing: the deployment is as it should be, or the plan's actions come first.
	Nothing WaitFor = "Nothing"
	// Observation: the set's controller has not acted on the set's spec yet.
	Observation WaitFor = "Observation"
	// Creation: machines of the new set do not exist yet.
	Creation WaitFor = "Creation"
	// Availability: machines of the new set are not available yet.
	Availability WaitFor = "Availability"
	// Deletion: machines of the set are still on their way out.
	Deletion WaitFor = "Deletion"
	// Request: the strategy is OnDelete, and somebody has to delete machines of the set.
	Request WaitFor = "Request"
	// Resumption: the deployment is paused.
	Resumption WaitFor = "Resumption"
)

// available counts the machines that are available.
func (s *Set) available() (n int32) {
	for _, m := range s.Machines {
		n += int32(b2i(m.Available))
	}
	return n
}

// live counts the machines that are not being deleted.
func (s *Set) live() int32 {
	return int32(len(s.Machines))
}

// isSettled says whether what was last asked of the set has begun to happen. Then no machine is
// counted that the set is about to delete.
func (s *Set) isSettled() bool { return s.Observed && s.live() <= s.Desired }

// holds is how many machines the set has or may make without being asked again.
func (s *Set) holds() int32 { return max(s.Desired, s.Present) }

// newSet is the set of the deployment's template; nil if there is none.
func (s State) newSet() *Set {
	for i := range s.Sets {
		if s.Sets[i].New {
			return &s.Sets[i]
		}
	}
	return nil
}

// sorted returns s with a copy of its sets, the oldest first.
func (s State) sorted() State {
	s.Sets = slices.Clone(s.Sets)
	slices.SortFunc(s.Sets, func(a, b Set) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	return s
}

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
// rollout goes on for as long as an old set holds machines. So a part depends on what there is and
// on nothing that happened before, with one exception: whether a paused deployment whose template
// has no set yet was in a rollout cannot be seen. Its sets keep the part that they have.
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
	case set.New && s.IsRolling() && !onDelete:
		return Current
	default:
		return NoPart
	}
}

// IsRolling says whether an old set holds machines.
func (s State) IsRolling() bool { return s.heldByOld() > 0 }

// Limits are the amounts of a rolling update as numbers of machines.
type Limits struct {
	// MaxSurge is how many machines there may be beyond replicas.
	MaxSurge int32
	// MaxUnavailable is how many of replicas may be unavailable.
	MaxUnavailable int32
}

// Resolve turns the amounts of a spec into numbers for a deployment of that many replicas. What is
// left out or cannot be read has the schema's default. A percentage of surge is rounded up, one of
// unavailable machines down. If both come to 0, one machine may be unavailable, for otherwise
// nothing could ever be replaced. No more machines can be unavailable than there are. This is
// how Deployments of apps/v1 read the same fields
// (k8s.io/kubernetes/pkg/controller/deployment/util, ResolveFenceposts and MaxUnavailable).
// Negative numbers count as 0.
func Resolve(replicas int32, surge, unavailable *intstr.IntOrString) Limits {
	l := Limits{MaxSurge: scaled(surge, 1, replicas, true), MaxUnavailable: scaled(unavailable, 0, replicas, false)}
	if l.MaxSurge == 0 && l.MaxUnavailable == 0 {
		l.MaxUnavailable = 1
	}
	l.MaxUnavailable = min(l.MaxUnavailable, max(replicas, 0))
	return l
}

func scaled(amount *intstr.IntOrString, unset, of int32, roundUp bool) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(amount, int(of), roundUp)
	if err != nil {
		return unset
	}
	return int32(max(n, 0))
}
