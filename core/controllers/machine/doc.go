// Package machine is the controller of Machines. A reconcile observes one Machine, its VM and its
// Node into a lifecycle.State, lets lifecycle decide on a step, applies it, and goes on until there
// is nothing to do; nothing in it waits for a cloud, a kubelet or a pod. What ends later wakes the
// Machine again: a call to its driver, a look at its VM, a change of its Node.
//
// Machines and Nodes may live in two clusters; see Options.Workload.
package machine
