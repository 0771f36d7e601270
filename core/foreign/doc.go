// Package foreign says which objects of this project's API group another system works on. It is
// pure.
//
// The group cluster.k8s.io, and the names of its kinds, are those of the first Cluster API.
// Kubermatic's machine-controller has them, too, and so had Cluster API v1alpha1. Two controllers
// that work on one Machine make two VMs for it. So what carries another system's mark is left to
// that system, until the mark is gone: see docs/adr/0021.
//
// A mark is what a system writes before it makes anything: its finalizer; and what somebody writes
// so that one system works on an object and no other: a label, an annotation. Finalizers of others,
// of a backup or an audit, are no such mark.
package foreign
