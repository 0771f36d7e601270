// Package machineset is the controller of MachineSets: it keeps as many Machines as a set should
// have, and replaces failed ones.
//
// Read reconcile.go first, then plan.go and apply.go. A reconcile gives the set its size and its
// Machines where these lack, observes, plans, applies the plan and reports in the status. Whom to
// create and whom to delete package scale decides, and how many Machines a set may have at most
// package surge. What no cache can tell yet stands in a memory; confirm.go asks the API server
// where that is not enough.
//
// It runs beside the controller of MachineDeployments, which resizes sets but never touches
// Machines.
package machineset
