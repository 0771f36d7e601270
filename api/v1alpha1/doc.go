// Package v1alpha1 holds the Kubernetes API that users of Millwright write and
// read: MachineDeployment, MachineSet, Machine, MachineClass and Cluster of group
// cluster.k8s.io.
//
// A MachineDeployment declares how many machines there are to be and from which
// template; it owns one MachineSet per template it has had; a MachineSet owns
// its Machines; a Machine is one VM in some cloud and, once it has joined, one
// Node. What many machines have in common can stand in a MachineClass, and what
// all of them have in a Cluster.
//
// The types are the source of the CustomResourceDefinitions in deploy/crds.
// Whatever a schema can know about a manifest is refused when it is applied, with
// the field's path and what to do instead; all else stands in a condition. The
// package depends on nothing but the Kubernetes API types.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.k8s.io
package v1alpha1
