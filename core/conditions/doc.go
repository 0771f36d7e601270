// Package conditions holds what the controllers of Machines, MachineSets and MachineDeployments do
// with the conditions in a status: find, compare, bound and write them.
package conditions
