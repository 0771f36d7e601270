package judge

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-dev/millwright/localcluster"
)

// story is what was told of an object by events: reasons, of its warnings apart.
type story struct {
	warned bool
	told   map[string]bool
	owed   []debt
}

// debt is an event that has to come.
type debt struct {
	what            chapter
	namespace, name string
	at              time.Time
}

type chapter string

const (
	failedStory chapter = "that it failed"
	goneStory   chapter = "that it is gone"
)

// exitTime is how long after something was away a process may exit because of it.
const exitTime = 10 * time.Second

// A teller is given tellTime; what it had yet to tell when it was killed within loseTime is lost.
const (
	tellTime = 45 * time.Second
	loseTime = 15 * time.Second
)

// refuseTime is in how long an event is sent.
const refuseTime = 2 * time.Second

func (j *Judge) story(uid string) *story {
	s := j.stories[uid]
	if s == nil {
		s = &story{told: map[string]bool{}}
		j.stories[uid] = s
	}
	return s
}

// event takes in an event.
func (j *Judge) event(o *corev1.Event) {
	s := j.story(string(o.InvolvedObject.UID))
	s.told[o.Reason] = true
	s.warned = s.warned || o.Type == corev1.EventTypeWarning
}

// owe notes that an event has to tell of the Machine.
func (j *Judge) owe(m *machine, what chapter, at time.Time) {
	s := j.story(string(m.UID))
	for _, d := range s.owed {
		if d.what == what {
			return
		}
	}
	s.owed = append(s.owed, debt{what: what, namespace: m.Namespace, name: keyOf(m.Machine), at: at})
}

// judgeStories looks at the debts that are due. Those that are not, or are excused, wait or go.
func (j *Judge) judgeStories(h History) {
	for uid, s := range j.stories {
		kept := s.owed[:0]
		for _, d := range s.owed {
			switch {
			case s.pays(d):
				j.explained++
			case j.tellerDied(d.at, h.Ends) || j.refused(d.at) || j.world.emptying(d.namespace, d.at, d.at.Add(tellTime)):
				j.unexplained++
			case j.world.now.Sub(d.at) < tellTime+loseTime && h.Unsettled == "":
				kept = append(kept, d)
			default:
				j.violate(Stories, d.at, "no event of Machine %s says %s", d.name, d.what)
			}
		}
		s.owed = kept
		if m := j.machines[uid]; m != nil && !m.gone.IsZero() && len(kept) == 0 {
			delete(j.stories, uid)
		}
	}
}

func (s *story) pays(d debt) bool {
	if d.what == failedStory {
		return s.warned
	}
	return s.told["Deleted"]
}

// tellerDied says whether the manager died about then, and with it events that it had yet to send.
func (j *Judge) tellerDied(at time.Time, ends []End) bool {
	for _, a := range j.acts {
		if a.Do == Killed && a.Target == "manager" && a.At.After(at.Add(-time.Second)) && a.At.Before(at.Add(loseTime)) {
			return true
		}
	}
	for _, e := range ends {
		if e.Process == "manager" && e.At.After(at.Add(-time.Second)) && e.At.Before(at.Add(loseTime)) {
			return true
		}
	}
	return false
}

// refused says whether the API server may have answered an event of about then with an error:
// client-go gives it up then. It repeats one that got no answer at all.
func (j *Judge) refused(at time.Time) bool {
	for _, a := range j.acts {
		away := (a.Do == Killed || a.Do == Hindered) && (a.Target == localcluster.Etcd || a.Target == localcluster.APIServer)
		if away && a.At.Before(at.Add(refuseTime)) && a.Until.After(at.Add(-time.Second)) {
			return true
		}
	}
	return false
}

// judgeProcesses: nothing of Millwright crashes, races or tells secrets.
func (j *Judge) judgeProcesses(h History) {
	for _, f := range h.Finds {
		promise := Sound
		if f.What == Canary {
			promise = Secrets
		}
		j.violate(promise, j.world.now, "the log of %s holds %s: %s", f.Process, f.What, f.Line)
	}
	for _, e := range h.Ends {
		if ours[e.Process] && !(e.State == "exit status 1" && j.cutOff(e.At)) {
			j.violate(Sound, e.At, "%s ended by itself, with %s: %s", e.Process, e.State, e.Tail)
		}
	}
}

// Canary is a Find: a secret.
const Canary = "a secret"

// ours are Millwright's processes.
var ours = map[string]bool{"manager": true, "driver": true, "cloud": true, "kubelets": true}

// cutOff says whether something that a process needs was away at an instant, or a moment before:
// reason enough to exit in order, and to be started again.
func (j *Judge) cutOff(at time.Time) bool {
	for _, a := range j.acts {
		if (a.Do == Killed || a.Do == Hindered) && !a.At.After(at) && a.Until.After(at.Add(-exitTime)) {
			return true
		}
	}
	return false
}
