// Package orphangc collects orphans: it looks for VMs of this cluster that belong to no Machine,
// and deletes them. A restore of the API server's backup, a finalizer that somebody removed by
// hand, or a lost etcd leaves such VMs behind in the cloud.
//
// It asks each account that an object names for all it holds, and compares that with the Machines
// in the cache. Where the cache knows nothing of a VM it asks the API server itself. Then it does
// what package orphan decides. An account that no object names any more is not known, and what is
// left in it is not found.
package orphangc
