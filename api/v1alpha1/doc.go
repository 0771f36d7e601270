// Package v1alpha1 holds the Kubernetes API that users of Millwright write and
// read: MachineDeployment, MachineSet, Machine, MachineClass and Cluster of group
// cluster.k8s.io.
//
// A MachineDeployment declares how many machines there are to be and from which template. It owns
// one MachineSet per template it has had. A MachineSet owns its Machines. A Machine is one VM in
// some cloud and, once it has joined, one Node. What many machines have in common can stand in a
// MachineClass, and what all of them have in a Cluster.
//
// The types are the source of the CustomResourceDefinitions in deploy/crds. What a schema can know
// to be wrong is refused when a manifest is applied, with the field's path and what to do instead.
// All else stands in a condition. The package depends on nothing but the Kubernetes API types.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.k8s.io
package v1alpha1
