// Package manager wires core together: client and caches, the leader's Lease, the clients of the
// drivers, and the controllers. It decides nothing.
package manager
