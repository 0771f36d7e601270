// Package ownership is how MachineDeployments own MachineSets, and MachineSets own Machines: who
// adopts and releases an object, how its events find the owner, which of its labels and annotations
// come from the owner, and when an owned Machine may be removed for good.
package ownership
