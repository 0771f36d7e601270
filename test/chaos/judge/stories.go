package judge

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// story is what events said of an object, and what they have yet to say.
type story struct {
	// warned says that one of them was a warning; reasons are those of all.
	warned  bool
	reasons map[string]bool
	awaited []awaitedEvent
}

// awaitedEvent is an event of a Machine that has to come.
type awaitedEvent struct {
	says            string
	namespace, name string
	at              time.Time
}

// What an event has to say.
const (
	saysFailed = "that it failed"
	saysGone   = "that it is gone"
)

// exitTime is how long after something was away a process may exit because of it.
const exitTime = 10 * time.Second

// An event has eventTime to come. What the manager had yet to send when it was killed within
// loseTime is lost.
const (
	eventTime = 45 * time.Second
	loseTime  = 15 * time.Second
)

// refuseTime is in how long an event is sent.
const refuseTime = 2 * time.Second

// stories are those of all objects, by uid.
type stories struct {
	byUID map[string]*story
	// explained and unexplained count the events that came, and those that were lost for a reason.
	explained, unexplained int
}

func (s *stories) of(uid string) *story {
	found := s.byUID[uid]
	if found == nil {
		found = &story{reasons: map[string]bool{}}
		s.byUID[uid] = found
	}
	return found
}

// noteEvent takes in an event.
func (s *stories) noteEvent(o *corev1.Event) {
	of := s.of(string(o.InvolvedObject.UID))
	of.reasons[o.Reason] = true
	of.warned = of.warned || o.Type == corev1.EventTypeWarning
}

// await notes that an event has to say this of the Machine.
func (s *stories) await(m *machine, says string, at time.Time) {
	of := s.of(string(m.UID))
	for _, e := range of.awaited {
		if e.says == says {
			return
		}
	}
	of.awaited = append(of.awaited, awaitedEvent{says: says, namespace: m.Namespace, name: keyOf(m.Machine), at: at})
}

// hasSaid says whether the event has come.
func (s *story) hasSaid(e awaitedEvent) bool {
	if e.says == saysFailed {
		return s.warned
	}
	return s.reasons["Deleted"]
}

// judgeStories looks for events that should have come. An event that is excused is forgotten; one
// that still has time is kept for later.
func (j *Judge) judgeStories(h History) {
	for uid, s := range j.stories.byUID {
		kept := s.awaited[:0]
		for _, e := range s.awaited {
			switch {
			case s.hasSaid(e):
				j.stories.explained++
			case j.mayBeLost(e, h.Ends):
				j.stories.unexplained++
			case j.world.now.Sub(e.at) < eventTime+loseTime && h.Unsettled == "":
				kept = append(kept, e)
			default:
				j.violate(Stories, e.at, "no event of Machine %s says %s", e.name, e.says)
			}
		}
		s.awaited = kept
		if m := j.machines[uid]; m != nil && !m.gone.IsZero() && len(kept) == 0 {
			delete(j.stories.byUID, uid)
		}
	}
}

// mayBeLost says whether an event may have been lost for a reason that is not Millwright's.
func (j *Judge) mayBeLost(e awaitedEvent, ends []End) bool {
	for _, end := range ends {
		if end.Process == "manager" && losesEvents(e.at, end.At) {
			return true
		}
	}
	return j.acts.haveKilledManager(e.at) || j.acts.haveRefusedEvents(e.at) ||
		j.world.emptying(e.namespace, e.at, e.at.Add(eventTime))
}

// losesEvents says whether a manager that ended may have had an event of an instant yet to send.
func losesEvents(at, ended time.Time) bool {
	return ended.After(at.Add(-time.Second)) && ended.Before(at.Add(loseTime))
}
