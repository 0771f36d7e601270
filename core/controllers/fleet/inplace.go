package fleet

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// forVM returns the part of a template's spec that a VM is made from. A change of it replaces Machines, which cannot be
// changed so. It shares memory with the spec.
func forVM(spec *clusterv1alpha1.MachineSpec) clusterv1alpha1.MachineSpec {
	return clusterv1alpha1.MachineSpec{ProviderSpec: spec.ProviderSpec, ClusterRef: spec.ClusterRef, Versions: spec.Versions}
}

// InPlace returns the part of a template's spec that reaches Machines that are there already: all but what would need
// another VM, and what is each Machine's own. What it leaves out is zero. It shares memory with the spec.
func InPlace(spec *clusterv1alpha1.MachineSpec) clusterv1alpha1.MachineSpec {
	part := *spec
	part.ProviderSpec, part.ClusterRef, part.Versions = clusterv1alpha1.ProviderSpec{}, nil, clusterv1alpha1.MachineVersions{}
	part.MachineUID, part.ProviderID = nil, nil
	// Nobody interprets it.
	part.Metadata.CreationTimestamp = nil
	return part
}

// SameInPlace says whether two results of InPlace mean the same.
func SameInPlace(a, b clusterv1alpha1.MachineSpec) bool {
	return apiequality.Semantic.DeepEqual(a, b)
}

// CopyInPlace gives to the in-place part of from, and leaves the rest of it as it is.
func CopyInPlace(to *clusterv1alpha1.MachineSpec, from *clusterv1alpha1.MachineSpec) {
	part := InPlace(from.DeepCopy())
	part.ProviderSpec, part.ClusterRef, part.Versions = to.ProviderSpec, to.ClusterRef, to.Versions
	part.MachineUID, part.ProviderID = to.MachineUID, to.ProviderID
	part.Metadata.CreationTimestamp = to.Metadata.CreationTimestamp
	*to = part
}
