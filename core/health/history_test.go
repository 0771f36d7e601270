package health

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

// ward is a set whose Machines fail and come up as time goes by, in a fleet that does, too.
type ward struct {
	*rapid.T
	State
	desired, made int
}

// round carries out what Decide says, checks it, and creates what is missing.
func (w *ward) round() {
	w.Missing = w.desired - len(w.staying())
	w.Attempts = w.Attempts.Seen(w.Machines)
	v := Decide(w.State)
	w.check(v)
	if len(v.Replace) > 0 {
		w.Attempts = w.Attempts.After(w.Machines)
	}
	for i := range w.Machines {
		if m := &w.Machines[i]; slices.Contains(v.Replace, m.UID) {
			m.Deleting, m.Failed = true, false
		}
	}
	for range w.desired - len(w.staying()) {
		w.made++
		w.Machines = append(w.Machines, Machine{UID: strconv.Itoa(w.made), Created: w.Now})
	}
}

func (w *ward) staying() []Machine {
	return slices.DeleteFunc(slices.Clone(w.Machines), func(m Machine) bool { return m.Deleting })
}

func (w *ward) check(v Verdict) {
	if (len(v.Replace) > 0) == (v.Reason != NoReason) && len(w.failed()) > 0 {
		w.Fatalf("%d have failed: %+v", len(w.failed()), v)
	}
	if len(v.Replace) == 0 {
		if v.Reason == Settling && v.Again <= 0 || v.Reason == Pausing && v.Again <= 0 {
			w.Fatalf("nobody will look again: %+v", v)
		}
		return
	}
	if w.Fleet.Meltdown(w.Limits.MaxUnhealthy) {
		w.Fatalf("%v are replaced while %+v", v.Replace, w.Fleet)
	}
	under := w.Missing
	newest := time.Time{}
	for _, m := range w.Machines {
		replaced := slices.Contains(v.Replace, m.UID)
		switch {
		case replaced && (m.Deleting || !m.Failed || m.Preserved || w.Now.Sub(m.FailedSince) < w.Limits.Settle):
			w.Fatalf("at %s %+v is replaced", w.Now, m)
		case m.Failed && !m.Deleting && !m.Preserved && m.Created.After(newest):
			newest = m.Created
		case !m.Failed && !m.Deleting && !m.Available && !m.Stopped && w.Now.Sub(m.Created) < w.Limits.Startup:
			under++
		}
	}
	if len(v.Replace)+under > w.Limits.MaxInFlight {
		w.Fatalf("%v are replaced while %d are under way", v.Replace, under)
	}
	if pause := w.Now.Sub(newest); pause < w.Limits.Pause || w.Attempts.Count > 6 && pause < w.Limits.LongestPause {
		w.Fatalf("%v are replaced %s after the newest was made, after %d in vain", v.Replace, pause, w.Attempts.Count)
	}
}

// happens lets one Machine fail, come up, stop, be preserved, be deleted by somebody, or be gone.
func (w *ward) happens() {
	i := rapid.IntRange(0, len(w.Machines)-1).Draw(w.T, "which")
	m := &w.Machines[i]
	switch what := rapid.SampledFrom([]string{"fails", "fails", "comes up", "stops", "is deleted", "is preserved"}).Draw(w.T, "what"); {
	case m.Deleting:
		w.Machines = slices.Delete(w.Machines, i, i+1)
	case what == "is preserved":
		m.Preserved = !m.Preserved
	case what == "is deleted":
		m.Deleting, m.Failed = true, false
	case m.Failed:
	case what == "fails":
		m.Failed, m.FailedSince, m.Available, m.Stopped = true, w.Now, false, false
	case what == "stops":
		m.Stopped, m.Available = true, false
	default:
		m.Available, m.Stopped = true, false
	}
}

func drawWard(t *rapid.T) *ward {
	w := &ward{T: t, desired: rapid.IntRange(1, 5).Draw(t, "desired")}
	w.Now = start
	w.Limits = Limits{
		MaxUnhealthy: intstr.FromString("33%"), MaxInFlight: rapid.IntRange(1, 2).Draw(t, "in flight"),
		Startup: 10 * time.Minute, Settle: 5 * time.Second, Pause: 10 * time.Second, LongestPause: 10 * time.Minute,
	}
	w.round()
	return w
}

// Whatever happens, no more than the budget is under way. Nothing is replaced in a meltdown,
// before it has settled or within the pause. What is preserved is not replaced either. Where
// nothing is replaced, there is a reason. Once no more fail and the fleet is well, all that
// failed is replaced in the end. Decide is called then only when it has asked for that.
func TestSAFE4_SET4_ReplacementIsPatientButComesToAnEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWard(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.Now = w.Now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "seconds")) * time.Second)
			w.Fleet = Fleet{Machines: 20, Unhealthy: rapid.IntRange(4, 9).Draw(t, "unhealthy")}
			w.happens()
			w.round()
		}
		w.Fleet.Unhealthy = 6
		for range 8 * w.desired {
			w.Machines = slices.DeleteFunc(w.Machines, func(m Machine) bool { return m.Deleting })
			for i := range w.Machines {
				m := &w.Machines[i]
				m.Available, m.Stopped, m.Preserved = !m.Failed, false, false
			}
			w.Now = w.Now.Add(Decide(w.State).Again)
			w.round()
		}
		if left := w.failed(); len(left) > 0 || len(w.Machines) != w.desired {
			t.Fatalf("in the end: %+v", w.Machines)
		}
	})
}

// A set in which everything fails at once makes few Machines: as many in an hour as doubling pauses
// allow.
func TestSET4_ABrokenImageCostsFewMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWard(t)
		w.Limits.MaxInFlight = 1
		for end := w.Now.Add(time.Hour); w.Now.Before(end); {
			w.Machines = slices.DeleteFunc(w.Machines, func(m Machine) bool { return m.Deleting })
			for i := range w.Machines {
				if m := &w.Machines[i]; !m.Failed {
					m.Failed, m.FailedSince = true, w.Now
				}
			}
			w.Now = w.Now.Add(max(Decide(w.State).Again, time.Duration(rapid.IntRange(1, 30).Draw(t, "seconds"))*time.Second))
			w.round()
		}
		if made := w.made - w.desired; made > 12 {
			t.Fatalf("%d Machines were made in an hour", made)
		}
	})
}
