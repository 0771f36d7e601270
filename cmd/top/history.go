package top

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/cmd/tree"
	"github.com/millwright-dev/millwright/core/health"
)

// window is over how long rates are measured.
const window = time.Minute

// Frame is what there is to see at a moment.
type Frame struct {
	// Time is that moment.
	Time time.Time `json:"time"`
	// Deployments are sorted by namespace and name.
	Deployments []Deployment `json:"deployments"`
	// Machines is how many there are in all, and Phases how many of them are in each phase.
	Machines int            `json:"machines"`
	Phases   map[string]int `json:"phases"`
	// Joins and Leaves are how many machines became ready and went, a minute.
	Joins  float64 `json:"joinsPerMinute"`
	Leaves float64 `json:"leavesPerMinute"`
}

// Deployment is a MachineDeployment at that moment.
type Deployment struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Replicas is how many machines it should have, Updated how many of them have its template, and
	// Available how many are available. Outdated is how many others it has.
	Replicas  int `json:"replicas"`
	Updated   int `json:"updated"`
	Available int `json:"available"`
	Outdated  int `json:"outdated"`
	// Phases is how many machines are in each phase.
	Phases map[string]int `json:"phases"`
	// Left is how long it takes yet at the rate of the last minute, in seconds; absent where nobody
	// can tell, and 0 when it is complete.
	Left *float64 `json:"secondsLeft,omitempty"`
}

// IsComplete says whether all machines there should be are available, and no others are there.
func (d Deployment) IsComplete() bool {
	return d.Updated >= d.Replicas && d.Available >= d.Replicas && d.Outdated == 0
}

// History knows what happened lately. The zero value has seen nothing.
type History struct {
	first time.Time
	seen  map[types.UID]machine
	// joins and leaves are when machines became ready and went.
	joins, leaves []event
}

type machine struct {
	deployment types.UID
	ready      bool
}

type event struct {
	at         time.Time
	deployment types.UID
}

// Add returns what there is to see of a fleet, beside what was seen before.
func (h *History) Add(fleet tree.Fleet, now time.Time) Frame {
	owners := ownersOf(fleet)
	frame := Frame{Time: now, Deployments: []Deployment{}, Machines: len(fleet.Machines), Phases: map[string]int{}}
	phases := map[types.UID]map[string]int{}
	seen := map[types.UID]machine{}
	for i := range fleet.Machines {
		m := &fleet.Machines[i]
		phase := cmp.Or(string(m.Status.Phase), string(clusterv1alpha1.MachinePhasePending))
		is := machine{deployment: owners[m.UID], ready: health.IsReady(m)}
		seen[m.UID] = is
		frame.Phases[phase]++
		if phases[is.deployment] == nil {
			phases[is.deployment] = map[string]int{}
		}
		phases[is.deployment][phase]++
		if h.seen != nil && is.ready && !h.seen[m.UID].ready {
			h.joins = append(h.joins, event{now, is.deployment})
		}
	}
	for uid, was := range h.seen {
		if _, ok := seen[uid]; !ok {
			h.leaves = append(h.leaves, event{now, was.deployment})
		}
	}
	if h.seen == nil {
		h.first = now
	}
	h.seen = seen
	h.joins, h.leaves = lately(h.joins, now), lately(h.leaves, now)
	frame.Joins, frame.Leaves = h.rate(h.joins, now), h.rate(h.leaves, now)
	for i := range fleet.Deployments {
		md := &fleet.Deployments[i]
		frame.Deployments = append(frame.Deployments, h.deployment(md, phases[md.UID], now))
	}
	slices.SortFunc(frame.Deployments, func(a, b Deployment) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return frame
}

// ownersOf returns the deployment of each machine that has one.
func ownersOf(fleet tree.Fleet) map[types.UID]types.UID {
	deployments := map[types.UID]types.UID{}
	for i := range fleet.Sets {
		if owner := metav1.GetControllerOfNoCopy(&fleet.Sets[i]); owner != nil {
			deployments[fleet.Sets[i].UID] = owner.UID
		}
	}
	owners := map[types.UID]types.UID{}
	for i := range fleet.Machines {
		if set := metav1.GetControllerOfNoCopy(&fleet.Machines[i]); set != nil {
			owners[fleet.Machines[i].UID] = deployments[set.UID]
		}
	}
	return owners
}

func lately(events []event, now time.Time) []event {
	return slices.DeleteFunc(events, func(e event) bool { return now.Sub(e.at) >= window })
}

// rate is how many of the events there were a minute.
func (h *History) rate(events []event, now time.Time) float64 {
	over := min(now.Sub(h.first), window)
	if over <= 0 {
		return 0
	}
	return float64(len(events)) * float64(time.Minute) / float64(over)
}

func (h *History) deployment(md *clusterv1alpha1.MachineDeployment, phases map[string]int, now time.Time) Deployment {
	s := md.Status
	d := Deployment{
		Namespace: md.Namespace, Name: md.Name, Replicas: int(ptr.Deref(md.Spec.Replicas, 0)), Updated: int(s.UpdatedReplicas),
		Available: int(s.AvailableReplicas), Outdated: int(s.Replicas - s.UpdatedReplicas), Phases: phases,
	}
	isOther := func(e event) bool { return e.deployment != md.UID }
	left := max(d.Replicas-min(d.Updated, d.Available), d.Outdated)
	switch rate := h.rate(slices.DeleteFunc(slices.Clone(h.joins), isOther), now); {
	case d.IsComplete():
		d.Left = new(0.0)
	case rate > 0 && left > 0:
		d.Left = new(float64(left) / rate * time.Minute.Seconds())
	}
	return d
}
