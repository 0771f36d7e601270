package judge

import (
	"slices"
	"time"

	"github.com/millwright-dev/millwright/localcluster"
)

// acts are what chaos did: they excuse what would be a broken promise otherwise.
type acts []Act

// viewFrom returns the earliest instant that Millwright's view of the world at an instant may stem
// from: patience before, and more where it, or what it sees the world through, was hindered
// meanwhile.
func (all acts) viewFrom(at time.Time, patience time.Duration) time.Time {
	from := at.Add(-patience)
	for again := true; again; {
		again = false
		for _, a := range all {
			if !a.hinders() || a.At.After(at) || a.Until.Before(from) {
				continue
			}
			if earliest := a.At.Add(-patience); earliest.Before(from) {
				from, again = earliest, true
			}
		}
	}
	return from
}

// hinders says whether a process or link did not do its work.
func (a Act) hinders() bool { return a.Do == Killed || a.Do == Hindered }

// has says whether something was ever done to a target.
func (all acts) has(do Deed, target string) bool {
	return slices.ContainsFunc(all, func(a Act) bool { return a.Do == do && a.Target == target })
}

// hasChanged says whether somebody had changed a VM by an instant.
func (all acts) hasChanged(vm string, at time.Time) bool {
	return slices.ContainsFunc(all, func(a Act) bool { return a.Do == Changed && a.Target == vm && !a.At.After(at) })
}

// haveKilledManager says whether the manager was killed about then, and with it events that it had
// yet to send.
func (all acts) haveKilledManager(at time.Time) bool {
	return slices.ContainsFunc(all, func(a Act) bool { return a.Do == Killed && a.Target == "manager" && losesEvents(at, a.At) })
}

// haveRefusedEvents says whether the API server may have answered an event of about then with an
// error: client-go gives it up then. It repeats one that got no answer at all.
func (all acts) haveRefusedEvents(at time.Time) bool {
	return slices.ContainsFunc(all, func(a Act) bool {
		return a.hinders() && (a.Target == localcluster.Etcd || a.Target == localcluster.APIServer) &&
			a.At.Before(at.Add(refuseTime)) && a.Until.After(at.Add(-time.Second))
	})
}

// haveCutOff says whether something that a process needs was away at an instant, or a moment
// before: reason enough to exit in order, and to be started again.
func (all acts) haveCutOff(at time.Time) bool {
	return slices.ContainsFunc(all, func(a Act) bool { return a.hinders() && !a.At.After(at) && a.Until.After(at.Add(-exitTime)) })
}
