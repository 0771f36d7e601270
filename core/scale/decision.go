package scale

import (
	"cmp"
	"slices"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/health"
)

// Machine is one of the set's, as package health reads it.
type Machine = health.Machine

// State is all that Decide looks at. The order of Machines means nothing.
type State struct {
	// Desired is how many Machines there should be.
	Desired int
	// Spare is how many Machines there may be beyond Desired while others are on their way out.
	// So these can be replaced before they are gone. With 0 each is replaced when it is gone.
	Spare int
	// Machines are all that exist, those being deleted included.
	Machines []Machine
	// Siblings is how many Machines the other sets of the MachineDeployment have. Bound is how
	// many all sets may have together. Either is 0 if nobody knows.
	Siblings, Bound int
	// Frozen: the last decision was Frozen.
	Frozen bool
	Order  Order
	// Repair bounds the replacement of failed Machines, Fleet is how all Machines fare, and
	// Attempts are the set's.
	Repair   health.Limits
	Fleet    health.Fleet
	Attempts health.Attempts
	// Now is the time.
	Now time.Time
}

// Order decides which Machines go first.
type Order struct {
	// UnavailableFirst: unavailable Machines go before marked ones, see docs/adr/0002.
	UnavailableFirst bool
	// Policy decides among Machines that nothing else tells apart. Empty means Random.
	Policy clusterv1alpha1.DeletePolicy
	// Seed makes the random order of one set differ from that of another.
	Seed string
}

// Decision is what to do next.
type Decision struct {
	// Create is how many Machines to create.
	Create int
	// Delete are the Machines to delete, the first to go first. None of them is being deleted
	// already.
	Delete []Machine
	// Held: because of refused Machines nothing is created or replaced until the spec changes.
	Held bool
	// Frozen: there are far more Machines than there may be, see State.overshoots. What is missing
	// is not created.
	Frozen bool
	// Health says why failed Machines are replaced or not. It is zero while there is something else
	// to do first.
	Health health.Verdict
}

// Live counts the Machines that are not on their way out.
func (s State) Live() int {
	n := 0
	for i := range s.Machines {
		if !s.Machines[i].Deleting {
			n++
		}
	}
	return n
}

// Decide compares what there is with what there should be. A set that is paused is not decided on,
// and one that a rollout lets dwindle creates none: newPlan of core/controllers/machineset.
//
//   - If more than Desired would stay, the surplus is deleted, in the order of Victims.
//   - If fewer than Desired stay, the missing ones are created. Never so many are created that
//     with those on their way out there are more than Desired and Spare.
//   - Failed ones are deleted as package health allows. Others are created in their place once they
//     are on their way out.
//   - While there are more than Desired and Spare, nothing is created or replaced.
//   - Nothing is created beyond what all sets together may have, whatever this set's size: its
//     deployment may want fewer than when it gave that size.
//   - While there are far too many Machines, of this set or its siblings, none is created at all.
func Decide(s State) Decision {
	live, present := s.Live(), len(s.Machines)
	if live > s.Desired {
		// Those on their way out come first in the order.
		return Decision{Delete: Victims(s.Machines, s.Order)[present-live : present-s.Desired]}
	}
	if live < s.Desired && s.overshoots() {
		return Decision{Frozen: true}
	}
	if present > s.Desired+s.Spare {
		return Decision{}
	}
	if slices.ContainsFunc(s.Machines, func(m Machine) bool { return m.Refused }) {
		return Decision{Held: true}
	}
	d := Decision{Create: min(s.Desired-live, s.Desired+s.Spare-present)}
	if s.Bound > 0 {
		d.Create = max(0, min(d.Create, s.Bound-s.Siblings-present))
	}
	s.repair(&d)
	return d
}

// overshoots says whether there are so many Machines, those on their way out included, that nobody
// can have meant it: more than Bound and a margin, a fifth of it and at least two. Once there were,
// it holds until there are Bound at most.
func (s State) overshoots() bool {
	if s.Bound == 0 {
		return false
	}
	margin := max(2, s.Bound/5)
	if s.Frozen {
		margin = 0
	}
	return len(s.Machines)+s.Siblings > s.Bound+margin
}

// repair adds to d the failed Machines to delete.
func (s State) repair(d *Decision) {
	d.Health = health.Decide(health.State{
		Limits: s.Repair, Fleet: s.Fleet, Attempts: s.Attempts, Now: s.Now,
		Machines: s.Machines, Missing: s.Desired - s.Live(),
	})
	for _, uid := range d.Health.Replace {
		i := slices.IndexFunc(s.Machines, func(m Machine) bool { return m.UID == uid })
		d.Delete = append(d.Delete, s.Machines[i])
	}
}

// Victims returns the Machines in the order in which they go when there are to be fewer. What comes
// first counts most:
//
//   - being deleted, marked, unadopted, failed, without a Node, unavailable, not preserved;
//   - of lower priority;
//   - as the policy says.
//
// With Order.UnavailableFirst every unavailable one comes before every available one. The order is
// total: it depends on nothing but the Machines.
func Victims(machines []Machine, o Order) []Machine {
	sorted := slices.Clone(machines)
	slices.SortFunc(sorted, func(a, b Machine) int {
		return cmp.Or(
			first(a.Deleting, b.Deleting),
			first(o.UnavailableFirst && !a.Available, o.UnavailableFirst && !b.Available),
			first(a.Marked, b.Marked),
			first(a.Unadopted, b.Unadopted),
			first(a.Failed, b.Failed),
			first(!a.HasNode, !b.HasNode),
			first(!a.Available, !b.Available),
			first(!a.Preserved, !b.Preserved),
			cmp.Compare(a.Priority, b.Priority),
			o.byPolicy(a, b),
			cmp.Compare(a.UID, b.UID),
		)
	})
	return sorted
}

// first sorts those for which it is true before the others.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

func (o Order) byPolicy(a, b Machine) int {
	switch o.Policy {
	case clusterv1alpha1.DeletePolicyNewest:
		return b.Created.Compare(a.Created)
	case clusterv1alpha1.DeletePolicyOldest:
		return a.Created.Compare(b.Created)
	default:
		return cmp.Compare(o.random(a), o.random(b))
	}
}

// random is an order that prefers nobody and yet is the same each time.
func (o Order) random(m Machine) uint64 {
	return fnv1a(fnv1a(fnv1a(fnvOffset, o.Seed), "/"), m.UID)
}

// The hash FNV-1a, as hash/fnv has it, which allocates: a sort asks for it thousands of times.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func fnv1a(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// Batch is how many Machines to create next, after the last batch went well. It is 1, 2, 4 and
// so on, so that an error that hits all of them costs few requests. Once width were created at
// once without an error, it is all that are left, width at a time.
func Batch(last, left, width int) int {
	if last >= width {
		return left
	}
	return min(max(2*last, 1), width, left)
}
