// Package machinedeployment is the controller of MachineDeployments: it makes a MachineSet for each
// template and moves Machines from the old sets to the new one.
//
// Read reconcile.go first, then plan.go and apply.go. A reconcile gives the deployment its size and
// its sets where these lack, observes, plans, applies the plan and reports in the status. How large
// each set should be package rollout decides. Machines are never touched: that is the work of the
// controller of MachineSets.
package machinedeployment
