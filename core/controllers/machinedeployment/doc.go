// Package machinedeployment rolls out the template of each MachineDeployment.
//
// A reconcile claims the MachineSets that the deployment selects, observes them and their Machines,
// lets package rollout plan, and applies the plan, each step guarded by the version of the object
// that it was planned on. Before it applies anything it makes sure that the API server has nothing
// newer than the cache: a plan made from stale numbers would use the same room twice.
package machinedeployment
