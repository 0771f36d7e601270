// Package conditions holds what the controllers of Machines, MachineSets and MachineDeployments do
// with the conditions in a status: find, compare, bound and write them. text.go bounds the texts of
// others that conditions and Events repeat.
package conditions
