package health

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/millwright-dev/millwright/core/earliest"
)

// Limits bound the replacement of failed Machines.
type Limits struct {
	// MaxUnhealthy is how many of all Machines may be unhealthy, a number or a percentage: with
	// more nothing is replaced.
	MaxUnhealthy intstr.IntOrString
	// MaxInFlight is how many replacements of a set may be under way at once: Machines that are yet
	// to be created, and those that were and are not available yet.
	MaxInFlight int
	// Startup is how long a Machine that is not available counts as one that is coming up. One that
	// takes longer stops no replacement.
	Startup time.Duration
	// Settle is how long a Machine must have been seen to have failed.
	Settle time.Duration
	// Pause is how long after the newest failed Machine was created the next one is replaced at the
	// soonest. It doubles with each attempt in vain, to LongestPause.
	Pause, LongestPause time.Duration
}

// DefaultLimits are those where the operator sets no other.
func DefaultLimits() Limits {
	return Limits{
		MaxUnhealthy: intstr.FromString("33%"), MaxInFlight: 1, Startup: 10 * time.Minute,
		Settle: 5 * time.Second, Pause: 10 * time.Second, LongestPause: 10 * time.Minute,
	}
}

// pause is how long to wait after so many attempts in vain.
func (l Limits) pause(attempts int) time.Duration {
	pause, longest := l.Pause, max(l.Pause, l.LongestPause)
	for range attempts {
		pause = min(2*pause, longest)
	}
	return pause
}

// State is all that Decide looks at. The order of Machines means nothing.
type State struct {
	Limits Limits
	Fleet  Fleet
	// Machines are all of the set.
	Machines []Machine
	// Missing is how many Machines of the set are yet to be created.
	Missing  int
	Attempts Attempts
	// Now is the time.
	Now time.Time
}

// Reason is why nothing is replaced.
type Reason string

const (
	// NoReason: nothing is to be replaced, or something is.
	NoReason Reason = ""
	// Settling: what has failed has only just been seen to have failed.
	Settling Reason = "Settling"
	// TooManyUnhealthy: more Machines than Limits.MaxUnhealthy are unhealthy in all.
	TooManyUnhealthy Reason = "TooManyUnhealthy"
	// Pausing: those replaced last have failed as well, or one has that was just created.
	Pausing Reason = "Pausing"
	// InFlight: as many replacements as there may be are under way.
	InFlight Reason = "InFlight"
)

// Verdict says what may be replaced now.
type Verdict struct {
	// Replace are the uids of the Machines to replace now, the newest first.
	Replace []string
	// Reason is why none is replaced, though some have failed.
	Reason Reason
	// Pause is how long the pause is that Pausing speaks of, from the creation of the newest failed
	// Machine on.
	Pause time.Duration
	// Again is in how long there may be something to replace though nothing has happened; 0 means
	// never.
	Again time.Duration
}

// Decide says which failed Machines may be replaced now. The newest goes first: where whatever
// takes its place fails as well, those of before are left as they are. A Machine that is being
// deleted no longer shows that it has failed. So whatever is missing counts as a replacement.
func Decide(s State) Verdict {
	failed := s.failed()
	if len(failed) == 0 {
		return Verdict{}
	}
	settled, settling := s.settled(failed)
	newest := failed[0]
	pause := s.Limits.pause(s.Attempts.Count)
	left := newest.Created.Add(pause).Sub(s.Now)
	inFlight, grown := s.inFlight()
	switch budget := s.Limits.MaxInFlight - inFlight; {
	case len(settled) == 0:
		return Verdict{Reason: Settling, Again: settling}
	case s.Fleet.Meltdown(s.Limits.MaxUnhealthy):
		return Verdict{Reason: TooManyUnhealthy}
	case left > 0:
		return Verdict{Reason: Pausing, Pause: pause, Again: left}
	case budget <= 0:
		return Verdict{Reason: InFlight, Again: grown}
	default:
		return Verdict{Replace: settled[:min(budget, len(settled))]}
	}
}

// Attempts count how often failed Machines of a set were replaced in vain. The zero value is none.
type Attempts struct {
	// Count is how often Machines were replaced since one came up that was created after Since.
	Count int
	// Since is when the newest Machine was created that was there at the last attempt. It is the
	// API server's time, like that of all creations.
	Since time.Time
}

// After returns the attempts after one more, when these Machines were there.
func (a Attempts) After(machines []Machine) Attempts {
	a.Count++
	for _, m := range machines {
		if m.Created.After(a.Since) {
			a.Since = m.Created
		}
	}
	return a
}

// Seen returns the attempts as they count when these Machines are seen: none if one has come up
// that was created after the last.
func (a Attempts) Seen(machines []Machine) Attempts {
	for _, m := range machines {
		if m.Available && m.Created.After(a.Since) {
			return Attempts{}
		}
	}
	return a
}

// failed returns the Machines that could be replaced, the newest first. Of those of one second the
// order is that of the uids, so that it is always the same.
func (s State) failed() []Machine {
	var failed []Machine
	for _, m := range s.Machines {
		if m.Failed && !m.Deleting && !m.Preserved {
			failed = append(failed, m)
		}
	}
	slices.SortFunc(failed, func(a, b Machine) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.UID, b.UID))
	})
	return failed
}

// settled returns which of the failed Machines are known for long enough to have failed; if none
// is, in how long one will be.
func (s State) settled(failed []Machine) (uids []string, wait time.Duration) {
	for _, m := range failed {
		left := s.Limits.Settle
		if !m.FailedSince.IsZero() {
			left = m.FailedSince.Add(s.Limits.Settle).Sub(s.Now)
		}
		if left <= 0 {
			uids = append(uids, m.UID)
			continue
		}
		wait = earliest.Delay(wait, left)
	}
	return uids, wait
}

// inFlight counts the replacements under way. It says in how long the first of them counts no
// more though it has not come up. 0 means never.
func (s State) inFlight() (n int, grown time.Duration) {
	n = s.Missing
	for _, m := range s.Machines {
		left := m.Created.Add(s.Limits.Startup).Sub(s.Now)
		if m.Deleting || m.Failed || m.Available || m.Stopped || left <= 0 {
			continue
		}
		n++
		grown = earliest.Delay(grown, left)
	}
	return n, grown
}
