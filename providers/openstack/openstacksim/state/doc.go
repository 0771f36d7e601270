// Package state is what the services of a simulated cloud share. It has the records of their
// resources and the inventories that hold them. It knows the order in which everything was made,
// and whose it is. It has the quotas, and the journal that outlives the cloud. It knows nothing of
// HTTP; package api does.
//
// Store holds it all together. The lock of Store.Front guards the store, and every service's
// inventories with it.
package state
