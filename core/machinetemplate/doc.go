// Package machinetemplate tells what of a MachineSet's or MachineDeployment's template needs
// another VM, and what reaches Machines that exist already. docs/adr/0008 has the reasons. It is
// pure.
package machinetemplate
