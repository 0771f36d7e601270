// Package orphan decides which VMs of this cluster belong to no Machine, and which of those may be
// deleted now. It is pure.
//
// Source: docs/adr/0006. A VM is an orphan when a complete list of its account shows it and no
// Machine names it, by machineUID or by providerID. No Machine may name it in the cache, nor on
// the API server itself. A VM is deleted only after it has been an orphan in two scans. It must be
// old enough that no create can be under way for it. Only a few are deleted at a time: what looks
// like an orphan may be the VM of a Machine that a restore is about to bring back.
//
// A scan that failed must not be handed to Decide: what is not known deletes nothing.
package orphan
