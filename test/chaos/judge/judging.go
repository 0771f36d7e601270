package judge

import (
	"fmt"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Options say what the judge has to know. All but Canaries are required.
type Options struct {
	// Core is the user that Millwright is to the API server.
	Core string
	// ClusterUID marks what is this cluster's in the cloud.
	ClusterUID string
	// ForeignNodes are the names of Nodes, and ForeignVMs the ids of VMs, that are none of
	// Millwright's business. Foreign are the ids of all that the cloud has held from the beginning.
	ForeignNodes, ForeignVMs, Foreign []string
	// Resources returns how many of each kind the cloud holds for a Machine once all has settled.
	Resources func(*clusterv1alpha1.Machine) map[string]int
	// StrayAge is how long a VM without a Machine is left alone; 0: for ever.
	StrayAge time.Duration
	// DrainTimeout is how long a drain may take. Then the VM goes, whatever pods are left.
	DrainTimeout time.Duration
	// DetachTimeout is how long volumes of drained pods are waited for where a Machine says nothing
	// of that. Then the VM goes with them.
	DetachTimeout time.Duration
	// UnhealthyAfter is for how long a Node has to say that it is not Ready until its Machine is
	// replaced for a health check.
	UnhealthyAfter time.Duration
	// Patience is how far Millwright's view of the world may be behind without anybody hindering
	// it.
	Patience time.Duration
}

// Judge remembers what it has seen, from one history to the next. Make one with New.
type Judge struct {
	options    Options
	world      world
	vms        map[string]*vm
	machines   map[string]*machine
	byName     map[string]*machine
	stories    stories
	pods       map[types.UID]*pod
	volumes    volumes
	tokens     tokens
	acts       acts
	violations []Violation
}

// New returns a Judge that has seen nothing.
func New(o Options) *Judge {
	return &Judge{
		options: o, world: newWorld(), vms: map[string]*vm{}, machines: map[string]*machine{}, byName: map[string]*machine{},
		stories: stories{byUID: map[string]*story{}}, pods: map[types.UID]*pod{}, tokens: tokens{}, volumes: newVolumes(),
	}
}

// Judge returns the promises that were not kept in h.
func (j *Judge) Judge(h History) []Violation {
	j.violations = nil
	j.acts = append(j.acts, h.Acts...)
	for _, c := range h.Changes {
		j.change(c)
	}
	j.judgeVMs(h)
	j.judgeForeign(h)
	j.judgeEvictions(h)
	for _, d := range j.firstDeletes(h) {
		d.judgePods()
		d.judgeVolumes()
	}
	j.judgeHooks(h)
	j.judgeStories(h)
	j.judgeProcesses(h)
	if h.Unsettled != "" {
		j.violate(Settles, j.world.now, "%s", h.Unsettled)
	} else {
		j.judgeLeft(h)
		for _, what := range j.tokens.left(j.machines) {
			j.violate(NoneLeft, j.world.now, "%s", what)
		}
	}
	return j.violations
}

// Summary says how much was judged, for people.
func (j *Judge) Summary() string {
	return fmt.Sprintf("%d Machines, %d VMs, %d stories explained (%d lost with a killed manager, or refused), %d volumes detached before their VMs went (%d timed out)",
		len(j.machines), len(j.vms), j.stories.explained, j.stories.unexplained, j.volumes.detached, j.volumes.timedOut)
}

func (j *Judge) violate(promise string, at time.Time, format string, args ...any) {
	j.violations = append(j.violations, Violation{Promise: promise, At: at, What: fmt.Sprintf(format, args...)})
}

// change takes in one change of an object.
func (j *Judge) change(c Change) {
	j.world.now = c.At
	switch o := c.Object.(type) {
	case *clusterv1alpha1.MachineDeployment:
		j.world.deployment(o, c)
	case *clusterv1alpha1.MachineSet:
		j.world.set(o, c.At)
	case *clusterv1alpha1.Machine:
		j.machine(o, c)
	case *corev1.Event:
		j.stories.noteEvent(o)
	case *corev1.Node:
		j.node(o, c)
	case *corev1.Namespace:
		j.world.namespace(o, c)
	case *corev1.Secret:
		j.tokens.change(o, c)
	case *corev1.Pod:
		j.pod(o, c)
	case *corev1.PersistentVolumeClaim:
		j.volumes.bound[keyOf(o)] = o.Spec.VolumeName
	case *storagev1.VolumeAttachment:
		j.volumes.attachment(o, c)
	}
}

// orderFrom returns the earliest instant that what is done in a set at an instant may stem from.
// What the set was told a moment ago may still be done: that stems from what its deployment was
// seen to want then.
func (j *Judge) orderFrom(set types.UID, at time.Time) time.Time {
	from := j.acts.viewFrom(at, j.options.Patience)
	if told := j.world.sizes[set].at; told.After(from) {
		return j.acts.viewFrom(told, j.options.Patience)
	}
	return from
}
