// Package state is what the services of a simulated cloud share: the records of their resources and
// the inventories that hold them, the order in which everything was made, whose it is, the quotas,
// and the journal that outlives the cloud. It knows nothing of HTTP; package api does.
//
// Store holds it all together. The lock of Store.Front guards the store, and every service's
// inventories with it.
package state
