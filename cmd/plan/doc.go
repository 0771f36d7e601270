// Package plan tells what a change of a MachineDeployment would do: which fields change, which
// machines are replaced for it, and in which waves.
package plan
