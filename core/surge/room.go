package surge

import (
	"slices"
	"strconv"

	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// AloneSpare is how many Machines a set without a MachineDeployment may have beyond its size while
// others are on their way out: as many as the sets of a MachineDeployment that does not say.
const AloneSpare = 1

// Room is how many Machines a set may have.
type Room struct {
	// Spare is how many there may be beyond the set's size while others are on their way out.
	Spare int
	// Siblings is how many Machines the MachineDeployment's other sets have, and Bound how many all
	// its sets may have together; 0 if nobody knows.
	Siblings, Bound int
}

// Alone returns the room of a set of that size that belongs to no MachineDeployment.
func Alone(size int) Room { return Room{Spare: AloneSpare, Bound: size + AloneSpare} }

// Sibling is another set of the MachineDeployment, and its Machines, both from the cache.
type Sibling struct {
	Set      *clusterv1alpha1.MachineSet
	Machines []clusterv1alpha1.Machine
}

// Room returns the room of a set of that size. What the deployment may have, and neither the set
// nor its siblings hold, is to spare. A sibling holds the Machines that it has, or as many as it
// may create without being asked again: package rollout counts the same way. The room is empty if
// nobody can read how many Machines the deployment may have.
func (a *Account) Room(set *clusterv1alpha1.MachineSet, size int, siblings []Sibling) Room {
	own, ok := a.sizeOf(set)
	if !ok {
		return Room{}
	}
	room := Room{Bound: own.Max}
	left := own.Max - size
	for _, s := range siblings {
		given, _ := a.sizeOf(s.Set)
		unseen, _ := a.UnseenMachines(s.Set.UID, s.Machines)
		room.Siblings += len(s.Machines)
		left -= max(len(s.Machines)+unseen, given.Replicas)
	}
	left -= a.unseenSets(func(name string) bool {
		return name == set.Name || slices.ContainsFunc(siblings, func(s Sibling) bool { return s.Set.Name == name })
	})
	room.Spare = max(left, 0)
	return room
}

// sizeOf returns the size that the set was given last. It is false if nobody can read how many
// Machines its MachineDeployment may have.
func (a *Account) sizeOf(set *clusterv1alpha1.MachineSet) (Size, bool) {
	if size, ok := a.UnseenSize(set.Name, set.ResourceVersion); ok {
		return size, true
	}
	most, err := strconv.ParseInt(set.Annotations[clusterv1alpha1.MaxReplicasAnnotation], 10, 32)
	return Size{Replicas: int(ptr.Deref(set.Spec.Replicas, 0)), Max: int(most)}, err == nil
}
