// Package machinedeployment is the controller of MachineDeployments: it makes a MachineSet for each
// template and moves Machines from the old sets to the new one.
//
// Read reconcile.go first, then plan.go and apply.go. A reconcile observes the deployment, its sets
// and their Machines, plans, and applies the plan. How large each set should be package rollout
// decides. Machines are never touched: that is the work of the controller of MachineSets.
package machinedeployment
