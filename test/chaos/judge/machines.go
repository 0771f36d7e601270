package judge

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// machine is a Machine over its life.
type machine struct {
	*clusterv1alpha1.Machine
	deployment *deployment
	created    time.Time
	// deleted is when its deletion began, gone when it ended.
	deleted, gone time.Time
	// claims: it was made by hand, and names somebody else's VM.
	claims bool
	// hook is what held its deletion.
	hook hook
	// node is the name of its Node, once it has been seen to have one.
	node string
	// emptied: its VM's deletion was asked for, and what was on the Node then was judged.
	emptied bool
	// detachTimedOut is when it was written that volumes are no longer waited for; zero before.
	detachTimedOut time.Time
	// unready is when it was last Ready before it stopped to be so, and since is since when it had
	// been.
	unready, since time.Time
}

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// machine takes in a change of a Machine.
func (j *Judge) machine(o *clusterv1alpha1.Machine, c Change) {
	m := j.machines[string(o.UID)]
	if m == nil {
		m = &machine{Machine: o, created: c.At, claims: isClaim(o)}
		j.machines[string(o.UID)] = m
		if before := j.byName[keyOf(o)]; before != nil {
			j.violate(OneVM, c.At, "Machine %s has the name of one that was there before", keyOf(o))
		}
		j.byName[keyOf(o)] = m
		j.judgeSurge(m, c.At)
	}
	begins := !o.DeletionTimestamp.IsZero() && m.deleted.IsZero()
	m.hook.note(o, c, begins)
	m.noteVolumes(o, c)
	j.judgeHealth(m, o, c.At)
	if begins {
		m.deleted = c.At
		j.judgeAvailability(m, c.At)
	}
	if was := uidOf(m.Machine); was != "" && uidOf(o) != was {
		j.violate(OneVM, c.At, "the machineUID of Machine %s became another one", keyOf(o))
	}
	if since, ready := readySince(m.Machine); ready {
		if _, still := readySince(o); !still {
			m.unready, m.since = c.At, since
		}
	}
	m.Machine = o
	if ref := o.Status.NodeRef; ref != nil {
		m.node = ref.Name
	}
	if o.Status.Phase == clusterv1alpha1.MachinePhaseFailed {
		j.stories.await(m, saysFailed, c.At)
	}
	if c.Gone {
		m.gone = c.At
		if m.deployment != nil {
			delete(m.deployment.machines, keyOf(o))
		}
		if o.Spec.ProviderID != nil && !m.claims {
			j.stories.await(m, saysGone, c.At)
		}
	}
}

// isClaim says whether a new Machine was made by hand with a providerID.
func isClaim(m *clusterv1alpha1.Machine) bool {
	return m.Spec.ProviderID != nil && metav1.GetControllerOf(m) == nil
}

func uidOf(m *clusterv1alpha1.Machine) string {
	if m.Spec.MachineUID == nil {
		return ""
	}
	return *m.Spec.MachineUID
}

func readySince(m *clusterv1alpha1.Machine) (time.Time, bool) {
	c := meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionReady)
	if c == nil || c.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

// isAvailable says whether the Machine serves at an instant, or did so at some time from another
// instant on.
func (m *machine) isAvailable(minReady time.Duration, from, at time.Time) bool {
	return m.deleted.IsZero() && m.serves(minReady, from, at)
}

// serves is isAvailable of a Machine that may be on its way out.
func (m *machine) serves(minReady time.Duration, from, at time.Time) bool {
	if since, ready := readySince(m.Machine); ready && !since.Add(minReady).After(at) {
		return true
	}
	return !m.unready.IsZero() && !m.unready.Before(from) && !m.since.Add(minReady).After(m.unready)
}

// haveTaken says whether a user has taken the Machine away after an instant, until when it was
// available.
func (all acts) haveTaken(m *machine, minReady time.Duration, from time.Time) bool {
	return !m.deleted.IsZero() && !m.deleted.Before(from) && all.has(DeletedByHand, keyOf(m.Machine)) && m.serves(minReady, from, m.deleted)
}

// judgeSurge: there are never more Machines than replicas and surge, those on their way out
// included.
func (j *Judge) judgeSurge(m *machine, at time.Time) {
	d, set := j.world.deploymentOf(m.Machine)
	if d == nil {
		return
	}
	m.deployment = d
	d.machines[keyOf(m.Machine)] = m
	most := d.most(j.orderFrom(set, at))
	if n := len(d.machines); n > most {
		j.violate(Surge, at, "%s has %d Machines with %s, and may have %d", d.name, n, keyOf(m.Machine), most)
	}
}

// judgeAvailability: core deletes no Machine that serves, where too few that serve would be left.
func (j *Judge) judgeAvailability(m *machine, at time.Time) {
	d, set := j.world.deploymentOf(m.Machine)
	if d == nil || d.leaving || j.world.leaving[set] || j.acts.has(DeletedByHand, keyOf(m.Machine)) || j.world.emptying(m.Namespace, at, at) {
		return
	}
	from := j.orderFrom(set, at)
	floor, minReady, longest := d.floor(from)
	if longest > 0 {
		longest += time.Second // the API server has cut off a fraction of a second from when it became Ready
	}
	since, ready := readySince(m.Machine)
	isExcused := isAskedFor(m.Machine) || isToBeReplaced(m.Machine) && j.world.isSick(m.node, from)
	if !ready || isExcused || since.Add(longest).After(at) {
		return
	}
	left := d.others(m, func(other *machine) bool {
		return other.isAvailable(minReady, from, at) || j.acts.haveTaken(other, minReady, from)
	})
	if left < floor {
		j.violate(Availability, at, "%s was deleted, and left %s with %d available Machines; there have to be %d", keyOf(m.Machine), d.name, left, floor)
	}
}

// others counts the other machines of which something is so.
func (d *deployment) others(m *machine, is func(*machine) bool) int {
	n := 0
	for _, other := range d.machines {
		if other != m && is(other) {
			n++
		}
	}
	return n
}

// isAskedFor says whether a user has asked for this Machine to go: its loss is his, see
// docs/adr/0002.
func isAskedFor(m *clusterv1alpha1.Machine) bool {
	for _, annotation := range []string{clusterv1alpha1.DeleteMachineAnnotation, clusterv1alpha1.DeleteNowAnnotation} {
		if _, ok := m.Annotations[annotation]; ok {
			return true
		}
	}
	return false
}
