// Package driver is the fake cloud's driver, with all that a real one has: it maps the contract to
// a cloud's API and does nothing else. It keeps nothing between calls that a call would need; any
// number of it can serve the same cloud.
//
// How it keeps the contract's promises, and what to look for in a real cloud:
//
//   - Everything is found by tags that are on it from its birth: the cluster's uid and the
//     machine's.
//   - A VM needs a NIC, made before it. Both are made with a client token that follows from the
//     machine's uid. So the cloud makes no second one, however often and by however many drivers it
//     is asked. Where a cloud has no such token, something else has to be unique: a name, a port's
//     address.
//   - What a create that died half-way has left is found by its tags, continued by the next create,
//     or removed by delete.
//   - Delete goes the other way: first the VM, then what it needed.
package driver
