package scale

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-dev/millwright/core/health"
)

// repairs is a set whose Machines fail and come up as time goes by.
type repairs struct {
	*rapid.T
	State
	made int
}

// decide carries out what Decide says, and checks what it replaces.
func (r *repairs) decide() Decision {
	d := Decide(r.State)
	if len(d.Delete) > 0 {
		r.check(d.Delete)
	}
	for i := range r.Machines {
		if m := &r.Machines[i]; slices.ContainsFunc(d.Delete, func(v Machine) bool { return v.UID == m.UID }) {
			// What is on its way out does not show that it has failed.
			m.Deleting, m.Failed = true, false
		}
	}
	for range d.Create {
		r.made++
		name := strconv.Itoa(r.made)
		r.Machines = append(r.Machines, Machine{Name: name, UID: name, Created: r.Now})
	}
	return d
}

func (r *repairs) check(replaced []Machine) {
	if len(replaced) > 1 || r.Live() < r.Desired {
		r.Fatalf("%d are replaced, %d of %d are there", len(replaced), r.Live(), r.Desired)
	}
	for _, m := range r.Machines {
		age := r.Now.Sub(m.Created)
		switch {
		case m.Deleting || m.Available:
		case m.Failed && (age < r.Repair.Pause || m.Created.After(replaced[0].Created)):
			r.Fatalf("at %s %+v is replaced before %+v", r.Now, replaced[0], m)
		case !m.Failed && age < r.Repair.Startup:
			r.Fatalf("at %s %+v is replaced while %+v comes up", r.Now, replaced[0], m)
		}
	}
}

// happens lets one Machine fail, come up, be deleted by somebody, or be gone.
func (r *repairs) happens() {
	if len(r.Machines) == 0 {
		return
	}
	i := rapid.IntRange(0, len(r.Machines)-1).Draw(r.T, "which")
	m := &r.Machines[i]
	switch what := rapid.SampledFrom([]string{"fails", "fails", "comes up", "is deleted"}).Draw(r.T, "what"); {
	case m.Deleting:
		r.Machines = slices.Delete(r.Machines, i, i+1)
	case what == "fails":
		failed(m)
	case what == "is deleted":
		m.Deleting, m.Failed = true, false
	case !m.Failed:
		m.HasNode, m.Available = true, true
	}
}

// Whatever fails, and whatever becomes of what takes its place: failed Machines are replaced one at
// a time, the newest first, none while another one comes up, and none before the newest is old
// enough. Once no more fail, all are replaced in the end. Decide is called only when something
// has happened or when it has asked for that.
func TestRepairIsPatientButComesToAnEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &repairs{T: t, State: State{
			Desired: rapid.IntRange(1, 5).Draw(t, "desired"), Spare: rapid.IntRange(0, 2).Draw(t, "spare"),
			Repair: health.Limits{MaxInFlight: 1, Startup: time.Minute, Pause: 10 * time.Second}, Now: time.Unix(0, 0),
		}}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			r.Now = r.Now.Add(time.Duration(rapid.IntRange(0, 15).Draw(t, "seconds")) * time.Second)
			r.happens()
			r.decide()
		}
		for range 6 * r.Desired {
			for i := range r.Machines {
				m := &r.Machines[i]
				m.HasNode, m.Available = !m.Failed, !m.Failed
			}
			r.Machines = slices.DeleteFunc(r.Machines, func(m Machine) bool { return m.Deleting })
			r.Now = r.Now.Add(r.decide().Health.Again)
		}
		if len(r.Machines) != r.Desired || slices.ContainsFunc(r.Machines, func(m Machine) bool { return m.Failed }) {
			t.Fatalf("in the end: %+v", r.Machines)
		}
	})
}
