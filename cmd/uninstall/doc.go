// Package uninstall removes all machines of a cluster, and then the CRDs that they lived in. It
// does what a person could do with kubectl, in the one order in which nothing is lost: the manager
// deletes the VMs, and no CRD goes before its last object.
package uninstall
