package health

import "k8s.io/apimachinery/pkg/util/intstr"

// Standing is how a Machine counts in the fleet.
type Standing int

const (
	// Uncounted: it need not be healthy now, or nobody can tell.
	Uncounted Standing = iota
	// Healthy: it works.
	Healthy
	// Unhealthy: it should work and does not.
	Unhealthy
)

// Signs are what is seen of a Machine. The zero value is one that has yet to come up.
type Signs struct {
	// Deleting: on its way out.
	Deleting bool
	// Paused: nobody is to touch it, so nobody promises that it works.
	Paused bool
	// Foreign: another system works on it.
	Foreign bool
	// Preserved: it is kept when it has failed.
	Preserved bool
	// Failed: it will never work.
	Failed bool
	// Refused: it failed because of what its spec says.
	Refused bool
	// CameUp: it worked before, also when it has failed since.
	CameUp bool
	// Ready: its Node is, and its VM is not known to be stopped or broken.
	Ready bool
	// DriverAway: what has become of its VM cannot be told now.
	DriverAway bool
}

// Standing is how the Machine counts. Not counted are those that are on their way out, paused,
// another system's, or preserved after they have failed. Nor are those that never came up,
// whether they still may or have failed. Nor are those that are not Ready while their driver is
// away, and those whose spec is wrong. A Machine that never worked is a sign of its template,
// which is one user's, and repairs nothing for anybody else. What worked and does not any more
// is what a meltdown is made of.
func (s Signs) Standing() Standing {
	switch {
	case s.Deleting, s.Paused, s.Foreign, s.Refused, s.Failed && s.Preserved:
		return Uncounted
	case s.Failed && s.CameUp:
		return Unhealthy
	case s.Failed:
		return Uncounted
	case s.Ready:
		return Healthy
	case s.DriverAway, !s.CameUp:
		return Uncounted
	default:
		return Unhealthy
	}
}

// Fleet is how many Machines there are in all sets and in none.
type Fleet struct {
	// Machines should be healthy; Unhealthy of them are not.
	Machines, Unhealthy int
}

// Meltdown says whether so much is unhealthy that nothing may be replaced: more than most of all
// Machines that should be healthy, a number or a percentage, which is rounded down. One unhealthy
// Machine is always allowed.
func (f Fleet) Meltdown(most intstr.IntOrString) bool {
	allowed, err := intstr.GetScaledValueFromIntOrPercent(&most, f.Machines, false)
	if err != nil {
		// A limit that nobody can read allows the least.
		allowed = 0
	}
	return f.Unhealthy > max(allowed, 1)
}
