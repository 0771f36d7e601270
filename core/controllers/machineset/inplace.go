package machineset

import (
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/machinetemplate"
	"github.com/millwright-dev/millwright/core/ownership"
)

// inPlaceMemory remembers which Machines have all of a template that can be changed in place, so
// that each version of a Machine is compared with it once.
type inPlaceMemory struct {
	template clusterv1alpha1.MachineTemplateSpec
	// upToDate is the version of each Machine that has all of it, or was given it and is what the
	// cache still shows.
	upToDate map[types.UID]string
}

// outdated returns the Machines that lack something of the set's template, without those that are
// being deleted.
func (s *inPlaceMemory) outdated(set *clusterv1alpha1.MachineSet, machines []clusterv1alpha1.Machine) []*clusterv1alpha1.Machine {
	if s.upToDate == nil || !apiequality.Semantic.DeepEqual(&s.template, &set.Spec.Template) {
		s.template, s.upToDate = *set.Spec.Template.DeepCopy(), map[types.UID]string{}
	}
	part, staying := partOf(set), 0
	var outdated []*clusterv1alpha1.Machine
	for i := range machines {
		m := &machines[i]
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		staying++
		switch {
		case s.upToDate[m.UID] == m.ResourceVersion:
		case part.isOn(m):
			s.upToDate[m.UID] = m.ResourceVersion
		default:
			outdated = append(outdated, m)
		}
	}
	if len(s.upToDate) > staying {
		s.forgetAllBut(machines)
	}
	return outdated
}

// forgetAllBut forgets the Machines that are not among these.
func (s *inPlaceMemory) forgetAllBut(machines []clusterv1alpha1.Machine) {
	kept := make(map[types.UID]bool, len(machines))
	for i := range machines {
		kept[machines[i].UID] = machines[i].DeletionTimestamp.IsZero()
	}
	maps.DeleteFunc(s.upToDate, func(uid types.UID, _ string) bool { return !kept[uid] })
}

// inPlacePart is what a set's template gives to Machines that are there already.
type inPlacePart struct {
	set *clusterv1alpha1.MachineSet
	// labels and annotations are those that the Machines carry, the record of where they come from
	// included. managed is that record; it is empty if nothing comes from the set.
	labels, annotations map[string]string
	managed             string
	// spec is the part that needs no other VM.
	spec clusterv1alpha1.MachineSpec
}

func partOf(set *clusterv1alpha1.MachineSet) inPlacePart {
	template := &set.Spec.Template
	// A Machine with nothing of its own shows what the template gives.
	bare := &clusterv1alpha1.Machine{}
	ownership.SyncMetadata(bare, template.Labels, template.Annotations)
	return inPlacePart{
		set: set, labels: bare.Labels, annotations: bare.Annotations,
		managed: bare.Annotations[clusterv1alpha1.ManagedAnnotation], spec: machinetemplate.InPlace(&template.Spec),
	}
}

// isOn says whether the Machine has all of it.
func (p inPlacePart) isOn(m *clusterv1alpha1.Machine) bool {
	// A Machine that was never given anything has no record. One that was given something before,
	// and is given nothing now, has an empty one.
	managed := m.Annotations[clusterv1alpha1.ManagedAnnotation]
	if managed != p.managed && (p.managed != "" || managed != "{}") {
		return false
	}
	return isWithin(p.labels, m.Labels) && isWithin(p.annotations, m.Annotations) &&
		machinetemplate.IsSameInPlace(p.spec, machinetemplate.InPlace(&m.Spec))
}

func isWithin(part, whole map[string]string) bool {
	for key, value := range part {
		if has, ok := whole[key]; !ok || has != value {
			return false
		}
	}
	return true
}

// addTo returns a copy of the Machine that has all of it. What somebody else put on the Machine
// stays.
func (p inPlacePart) addTo(m *clusterv1alpha1.Machine) *clusterv1alpha1.Machine {
	changed := m.DeepCopy()
	ownership.SyncMetadata(changed, p.set.Spec.Template.Labels, p.set.Spec.Template.Annotations)
	machinetemplate.CopyInPlace(&changed.Spec, &p.set.Spec.Template.Spec)
	return changed
}
