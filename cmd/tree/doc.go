// Package tree shows what MachineDeployments own: their sets, the sets' Machines, and the Nodes of
// these, each with the one sentence that says how it is.
package tree
