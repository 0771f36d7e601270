// Package surge is the accounting of what MachineDeployments may have beyond their replicas.
//
// A rollout that grows a set and a set that replaces Machines before they are gone draw on the same
// maxSurge. Neither sees at once in the cache what the other has just done. So each locks the
// deployment's Account, counts, records what it is about to do, and unlocks. Whoever comes next
// counts what is recorded until the cache shows it. docs/adr/0003 has the reasons.
package surge
