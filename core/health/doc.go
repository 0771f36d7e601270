// Package health says which Machines of the fleet are unhealthy, and which failed Machines of a set
// may be replaced now. It is pure: values in, values out; time is a field of a value.
//
// # The fleet
//
// A single machine that fails is replaced. Many that fail at once have a common cause: a cloud, a
// network or an API server that is in trouble. Replacing them would help nobody, and would delete
// machines that come back by themselves. So while more than Limits.MaxUnhealthy of all Machines are
// unhealthy, nothing is replaced anywhere: that is a meltdown, see Fleet.Meltdown. Of the fleet
// count the Machines that should be healthy: see Signs.Standing.
//
// A fleet does not fall ill at one instant, though its cause is one: what has failed is replaced
// Limits.Settle later at the soonest, when those that share its fate have shown.
//
// # The set
//
// Failed Machines are replaced a few at a time, the newest first, and the next one only after the
// one before it has come up. Whatever made them fail may make their replacements fail as well: a
// wrong setting of the cluster, for instance. Where these fail at once, there is a pause between
// them, twice as long after each until one comes up. The pause counts from the creation of a
// Machine that is still there, and Attempts stand in the set's status. So both outlive the process.
package health
