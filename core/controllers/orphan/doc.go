// Package orphan looks for VMs of this cluster that belong to no Machine, and deletes them: what a
// restore of the API server's backup, a finalizer that somebody removed by hand, or a lost etcd
// leaves behind in the cloud.
//
// It asks each account that an object names for all it holds, compares that with the Machines, in
// the cache and, where the cache knows nothing of a VM, on the API server itself, and does what
// core/orphan decides. An account that no object names any more is not known, and what is left in
// it is not found.
package orphan
