// Package machineset keeps the Machines of each MachineSet at their number.
//
// A reconcile claims the Machines that the set selects, observes them, lets package scale decide,
// creates or deletes, and reports in the status. It works on the cache, and asks the API server
// itself where a stale answer would cost a Machine: before the first change of a set in this
// process, after a lost answer, and before every deletion. What its MachineDeployment can spare it
// shares out with the others, see package surge.
package machineset
