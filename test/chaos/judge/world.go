package judge

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// world is what etcd holds of our kinds, as far as the history was read.
type world struct {
	now         time.Time
	deployments map[types.UID]*deployment
	// owners are the deployments of sets, by the sets' uid; sets that are gone stay.
	owners map[types.UID]types.UID
	// leaving are sets that are being deleted, or gone.
	leaving map[types.UID]bool
	// sizes are what sets were last told to have, and since when.
	sizes map[types.UID]size
	// emptied are the times in which a namespace was being deleted, and nodesGone when a Node went
	// last, by name.
	emptied   map[string][]span
	nodesGone map[string]time.Time
	// sick is when a Node last said that it is not Ready, by name.
	sick map[string]span
}

// span is a time; one that has no end goes on.
type span struct{ from, until time.Time }

type size struct {
	replicas int32
	at       time.Time
}

func newWorld() world {
	return world{
		deployments: map[types.UID]*deployment{}, owners: map[types.UID]types.UID{}, leaving: map[types.UID]bool{}, sizes: map[types.UID]size{},
		emptied: map[string][]span{}, nodesGone: map[string]time.Time{}, sick: map[string]span{},
	}
}

// namespace takes in a change of a namespace.
func (w *world) namespace(o *corev1.Namespace, c Change) {
	spans := w.emptied[o.Name]
	open := len(spans) > 0 && spans[len(spans)-1].until.IsZero()
	switch {
	case c.Gone && open:
		spans[len(spans)-1].until = c.At
	case !c.Gone && !o.DeletionTimestamp.IsZero() && !open:
		w.emptied[o.Name] = append(spans, span{from: c.At})
	}
}

// emptying says whether a namespace was being deleted at some time between two instants.
func (w *world) emptying(namespace string, from, until time.Time) bool {
	return slices.ContainsFunc(w.emptied[namespace], func(s span) bool {
		return !s.from.After(until) && (s.until.IsZero() || !s.until.Before(from))
	})
}

// deployment is a MachineDeployment and what its users wanted of it over time.
type deployment struct {
	name    string
	wishes  []wish
	leaving bool
	// machines are those that exist, by name.
	machines map[string]*machine
}

// wish is what was wanted from an instant on.
type wish struct {
	at                           time.Time
	replicas, surge, unavailable int
	minReady                     time.Duration
}

// most and floor bound how many machines there may be, and how many have to be available.
func (w wish) most() int  { return w.replicas + w.surge }
func (w wish) floor() int { return w.replicas - w.unavailable }

func (w *world) deployment(o *clusterv1alpha1.MachineDeployment, c Change) {
	d := w.deployments[o.UID]
	if d == nil {
		d = &deployment{name: o.Name, machines: map[string]*machine{}}
		w.deployments[o.UID] = d
	}
	d.leaving = d.leaving || c.Gone || !o.DeletionTimestamp.IsZero()
	if o.Spec.Replicas == nil {
		return
	}
	now := wishOf(o)
	now.at = c.At
	if n := len(d.wishes); n > 0 {
		last := d.wishes[n-1]
		last.at = now.at
		if last == now {
			return
		}
	}
	d.wishes = append(d.wishes, now)
}

func wishOf(o *clusterv1alpha1.MachineDeployment) wish {
	w := wish{replicas: int(*o.Spec.Replicas), surge: 1, minReady: time.Duration(o.Spec.MinReadySeconds) * time.Second}
	if r := o.Spec.Strategy.RollingUpdate; r != nil {
		w.surge, w.unavailable = resolve(r.MaxSurge, w.replicas, true, 1), resolve(r.MaxUnavailable, w.replicas, false, 0)
	}
	if w.surge == 0 && w.unavailable == 0 {
		// Percentages of little may both come to nothing; then one may be missing.
		w.unavailable = 1
	}
	w.unavailable = min(w.unavailable, w.replicas)
	return w
}

func resolve(v *intstr.IntOrString, replicas int, up bool, absent int) int {
	if v == nil {
		return absent
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, replicas, up)
	if err != nil {
		return absent
	}
	return n
}

func (w *world) set(o *clusterv1alpha1.MachineSet, at time.Time) {
	if owner := metav1.GetControllerOf(o); owner != nil {
		w.owners[o.UID] = owner.UID
	}
	if !o.DeletionTimestamp.IsZero() {
		w.leaving[o.UID] = true
	}
	if now := ptr.Deref(o.Spec.Replicas, 0); w.sizes[o.UID].at.IsZero() || w.sizes[o.UID].replicas != now {
		w.sizes[o.UID] = size{now, at}
	}
}

// deploymentOf returns the deployment of a Machine, and the uid of its set; nil when it has none.
func (w *world) deploymentOf(o *clusterv1alpha1.Machine) (*deployment, types.UID) {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return nil, ""
	}
	return w.deployments[w.owners[owner.UID]], owner.UID
}

// since returns what was wanted at some time from an instant on.
func (d *deployment) since(from time.Time) []wish {
	first := 0
	for i, w := range d.wishes {
		if !w.at.After(from) {
			first = i
		}
	}
	return d.wishes[first:]
}

// most is the largest number of machines that was allowed at some time from an instant on.
func (d *deployment) most(from time.Time) int {
	n := 0
	for _, w := range d.since(from) {
		n = max(n, w.most())
	}
	return n
}

// floor is the smallest number of machines that had to be available at some time from an instant
// on. It also returns the shortest and the longest time after which a Ready one counted.
func (d *deployment) floor(from time.Time) (floor int, minReady, longest time.Duration) {
	for i, w := range d.since(from) {
		if i == 0 || w.floor() < floor {
			floor = w.floor()
		}
		if i == 0 || w.minReady < minReady {
			minReady = w.minReady
		}
		longest = max(longest, w.minReady)
	}
	return floor, minReady, longest
}
