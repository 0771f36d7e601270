package tree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/rollout"
)

// Fleet are the objects of a namespace, or of all.
type Fleet struct {
	Deployments []clusterv1alpha1.MachineDeployment
	Sets        []clusterv1alpha1.MachineSet
	Machines    []clusterv1alpha1.Machine
}

// Item is an object, and those that it owns.
type Item struct {
	// Kind, Namespace and Name say which. A Node is in no namespace.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// UID is the object's.
	UID types.UID `json:"-"`
	// Ready is True, False, Unknown, or how many of its machines are available. A Node has none.
	Ready string `json:"ready,omitempty"`
	// Phase is a Machine's.
	Phase string `json:"phase,omitempty"`
	// Why is the reason and message of its condition; empty where all is well.
	Why string `json:"why,omitempty"`
	// Created is when it was made. A Node has none.
	Created metav1.Time `json:"created,omitzero"`
	// Owned are its own, sets from the newest to the oldest, Machines by name.
	Owned []*Item `json:"owned,omitempty"`
}

// Build puts each object below its owner. Those without an owner among the objects stand at the
// top, after the MachineDeployments.
func Build(f Fleet) []*Item {
	top := []*Item{}
	owners := map[types.UID]*Item{}
	byName := func(a, b metav1.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	}
	place := func(object metav1.Object, item *Item) {
		item.Namespace, item.Name, item.UID, item.Created = object.GetNamespace(), object.GetName(), object.GetUID(), object.GetCreationTimestamp()
		owners[object.GetUID()] = item
		if owner := metav1.GetControllerOf(object); owner != nil && owners[owner.UID] != nil {
			owners[owner.UID].Owned = append(owners[owner.UID].Owned, item)
			return
		}
		top = append(top, item)
	}
	for _, md := range sorted(f.Deployments, func(a, b *clusterv1alpha1.MachineDeployment) int { return byName(a, b) }) {
		place(md, deployment(md))
	}
	for _, ms := range sorted(f.Sets, func(a, b *clusterv1alpha1.MachineSet) int {
		return cmp.Or(cmp.Compare(rollout.Revision(b), rollout.Revision(a)), byName(a, b))
	}) {
		place(ms, set(ms))
	}
	for _, m := range sorted(f.Machines, func(a, b *clusterv1alpha1.Machine) int { return byName(a, b) }) {
		place(m, machine(m))
	}
	return top
}

// sorted returns pointers to the elements of a list in an order.
func sorted[T any](list []T, order func(a, b *T) int) []*T {
	pointers := make([]*T, len(list))
	for i := range list {
		pointers[i] = &list[i]
	}
	slices.SortFunc(pointers, order)
	return pointers
}

func deployment(md *clusterv1alpha1.MachineDeployment) *Item {
	return &Item{
		Kind: "MachineDeployment", Ready: fmt.Sprintf("%d/%d", md.Status.AvailableReplicas, ptr.Deref(md.Spec.Replicas, 0)),
		Why: wrong(md.Status.Conditions, map[string]metav1.ConditionStatus{
			clusterv1alpha1.ConditionAvailable: metav1.ConditionTrue, clusterv1alpha1.ConditionProgressing: metav1.ConditionTrue,
			clusterv1alpha1.ConditionPaused: metav1.ConditionFalse,
		}),
	}
}

func set(ms *clusterv1alpha1.MachineSet) *Item {
	return &Item{
		Kind: "MachineSet", Ready: fmt.Sprintf("%d/%d", ms.Status.AvailableReplicas, ptr.Deref(ms.Spec.Replicas, 0)),
		Why: wrong(ms.Status.Conditions, map[string]metav1.ConditionStatus{
			clusterv1alpha1.ConditionFrozen: metav1.ConditionFalse, clusterv1alpha1.ConditionPaused: metav1.ConditionFalse,
			clusterv1alpha1.ConditionReplicaFailure: metav1.ConditionFalse,
		}),
	}
}

func machine(m *clusterv1alpha1.Machine) *Item {
	item := &Item{Kind: "Machine", Phase: string(m.Status.Phase), Ready: string(metav1.ConditionUnknown)}
	if ready := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionReady); ready != nil {
		item.Ready = string(ready.Status)
		if ready.Status != metav1.ConditionTrue {
			item.Why = words(*ready)
		}
	}
	if node := m.Status.NodeRef; node != nil {
		item.Owned = []*Item{{Kind: "Node", Name: node.Name}}
	}
	return item
}

// wrong is the first condition, by type, that is not as it should be. One that is missing says
// nothing.
func wrong(conditions []metav1.Condition, want map[string]metav1.ConditionStatus) string {
	for _, kind := range slices.Sorted(maps.Keys(want)) {
		if c := apimeta.FindStatusCondition(conditions, kind); c != nil && c.Status != want[kind] {
			return words(*c)
		}
	}
	return ""
}

func words(c metav1.Condition) string {
	if c.Message == "" {
		return c.Reason
	}
	return c.Reason + ": " + c.Message
}
