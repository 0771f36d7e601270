// Package rollout decides how a MachineDeployment gets from the machines it has to those it should
// have: which MachineSet to make, which to scale and which to drop. It is pure: a value in, values
// out, no clock and no client.
//
// Three numbers bound every step, all of them about machines that exist, not about numbers that
// somebody wrote down:
//
//   - Surge. A set may hold max(desired, present) machines, where present counts those still being
//     deleted, because their VMs still use up quota. The sum over all sets is never raised above
//     replicas + maxSurge. So the new set gets replicas at most, and no more than the old sets
//     leave of replicas + maxSurge.
//   - Floor. The available machines of the new set plus the desired machines of the old sets
//     never fall below replicas - maxUnavailable by a rolling update. A set that a rollout
//     shrinks gives up its unavailable machines before available ones. So the available
//     machines of all sets never fall below the floor either.
//   - Order. Old machines that cannot be available go first. They too are bound by the floor.
//     So a broken new template leaves enough old machines, however many of these happen to be
//     unavailable for a moment.
//
// These are the bounds of a rolling update. Recreate and OnDelete have no surge; Recreate makes no
// new machine while there is an old one, OnDelete takes none away but those that somebody has
// deleted, and has old sets make none in their place. While a deployment is paused only its size is
// followed, and every set keeps its share.
//
// Plan acts only when every set is settled: its status has seen its spec, and the machines it no
// longer wants are on their way out. Without that gate a status that lags behind lets two steps use
// the same room.
package rollout
