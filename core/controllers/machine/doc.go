// Package machine is the controller of Machines. A reconcile observes one Machine, its VM and its
// Node into a lifecycle.State. lifecycle decides on a step, the reconcile applies it, and so on
// until there is nothing to do. Nothing in it waits for a cloud, a kubelet or a pod: what ends
// later wakes the Machine again, such as a call to its driver, a poll of its VM or a change of its
// Node.
//
// Read reconcile.go first, then provision.go and apply.go.
//
// Machines and Nodes may live in two clusters; see Options.Workload.
package machine
