package machineset

import (
	"maps"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/apiserver"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/machinetemplate"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/scale"
)

// memory is what this process knows of one set and nobody else does. One worker at a time
// reconciles a set, so it needs no lock. Losing it is safe: a new memory trusts the cache less.
type memory struct {
	uid     types.UID
	names   *scale.Names
	pending scale.Pending
	// listedVersion is the version of a live list of Machines, empty before the first.
	// listedGeneration is the generation that the set had before that list. What was written to
	// Machines before the set had it is no newer than the list.
	listedVersion    string
	listedGeneration int64
	// needsConfirmation: the API server is to be asked which Machines there are before any is
	// created.
	needsConfirmation bool
	// hasReservations: the account of the MachineDeployment, if the set has one, may record
	// Machines of the set.
	hasReservations bool
	// unseenSince is since when the cache has not shown everything that this process did; zero if
	// it does.
	unseenSince time.Time
	// upToDate is the version of each Machine that has all of template that can be changed in
	// place. It is also the version of before where this process has just changed the Machine.
	upToDate map[types.UID]string
	template clusterv1alpha1.MachineTemplateSpec
	// attempts is how often failed Machines were replaced in vain. The status has it, too, a moment
	// later.
	attempts health.Attempts
	// halted and frozen: an event has told that nothing is replaced because of other Machines, or
	// created because of too many.
	halted, frozen bool
	// reported is when the status was last written.
	reported time.Time
}

// view returns the set's Machines: the cached ones, and what this process knows better. It
// remembers what the cache shows by now.
func (m *memory) view(cached []scale.Machine) []scale.Machine {
	view := m.pending.View(cached)
	if m.attempts.Count > 0 {
		m.attempts = m.attempts.Seen(view)
	}
	for i := range view {
		m.names.MarkCreated(view[i].Name)
	}
	return view
}

// shows takes the version of a Machine that a cache has shown, and a generation of the set. It
// says whether the cache shows all that was written to Machines before the set had that
// generation. A watch keeps the order of writes.
func (m *memory) shows(seen string, generation int64) bool {
	return m.listedVersion != "" && m.listedGeneration == generation &&
		(seen == m.listedVersion || apiserver.IsNewer(seen, m.listedVersion))
}

// hasWaitedForCache says whether the cache has not shown for that long what this process did.
func (m *memory) hasWaitedForCache(long time.Duration, now time.Time) bool {
	switch {
	case m.pending.IsSettled():
		m.unseenSince = time.Time{}
	case m.unseenSince.IsZero():
		m.unseenSince = now
	default:
		return now.Sub(m.unseenSince) >= long
	}
	return false
}

// outdated returns the Machines that lack something of the set's template that can be changed in
// place, without those that are being deleted. It compares each version of a Machine with a
// template once.
func (m *memory) outdated(set *clusterv1alpha1.MachineSet, machines []*clusterv1alpha1.Machine) []*clusterv1alpha1.Machine {
	if m.upToDate == nil || !apiequality.Semantic.DeepEqual(&m.template, &set.Spec.Template) {
		m.template, m.upToDate = *set.Spec.Template.DeepCopy(), map[types.UID]string{}
	}
	var outdated []*clusterv1alpha1.Machine
	for _, machine := range machines {
		if !machine.DeletionTimestamp.IsZero() || m.upToDate[machine.UID] == machine.ResourceVersion {
			continue
		}
		if !hasTemplate(machine, &m.template) {
			outdated = append(outdated, machine)
			continue
		}
		m.upToDate[machine.UID] = machine.ResourceVersion
	}
	if len(m.upToDate) > len(machines) {
		staying := make(map[types.UID]bool, len(machines))
		for _, machine := range machines {
			staying[machine.UID] = true
		}
		maps.DeleteFunc(m.upToDate, func(uid types.UID, _ string) bool { return !staying[uid] })
	}
	return outdated
}

// hasTemplate says whether the Machine has all of the template that can be changed in place.
func hasTemplate(m *clusterv1alpha1.Machine, t *clusterv1alpha1.MachineTemplateSpec) bool {
	changed := withTemplate(m, t)
	return maps.Equal(m.Labels, changed.Labels) && maps.Equal(m.Annotations, changed.Annotations) &&
		apiequality.Semantic.DeepEqual(&m.Spec, &changed.Spec)
}

// withTemplate returns the Machine with all of the template that can be changed in place. What
// somebody else put on the Machine stays. The rest is shared with m: for reading only.
func withTemplate(m *clusterv1alpha1.Machine, t *clusterv1alpha1.MachineTemplateSpec) *clusterv1alpha1.Machine {
	changed := *m // What follows replaces maps and fields, and changes none.
	ownership.SyncMetadata(&changed, t.Labels, t.Annotations)
	machinetemplate.CopyInPlace(&changed.Spec, &t.Spec)
	return &changed
}

// memories are those of all sets, by name. They are safe for concurrent use.
type memories struct{ bySet sync.Map }

// of returns the set's memory, or a new one.
func (m *memories) of(set *clusterv1alpha1.MachineSet) *memory {
	known, _ := m.bySet.Load(client.ObjectKeyFromObject(set))
	mem, ok := known.(*memory)
	if !ok || mem.uid != set.UID {
		mem = &memory{
			uid: set.UID, names: scale.NewNames(set.Name, string(set.UID), set.Status.NextIndex),
			needsConfirmation: true, attempts: readAttempts(set.Status.Remediation),
		}
		m.bySet.Store(client.ObjectKeyFromObject(set), mem)
	}
	mem.names.Raise(set.Status.NextIndex)
	return mem
}

func (m *memories) forget(key types.NamespacedName) { m.bySet.Delete(key) }

func readAttempts(r *clusterv1alpha1.MachineSetRemediation) health.Attempts {
	if r == nil {
		return health.Attempts{}
	}
	return health.Attempts{Count: int(r.Attempts), Since: r.Newest.Time}
}

func writeAttempts(a health.Attempts) *clusterv1alpha1.MachineSetRemediation {
	if a.Count == 0 {
		return nil
	}
	return &clusterv1alpha1.MachineSetRemediation{Attempts: int32(a.Count), Newest: metav1.NewTime(a.Since)}
}
