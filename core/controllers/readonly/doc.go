// Package readonly shows on objects that the manager only looks on: it takes the place of all other
// controllers where the operator wants nothing to be created, changed or deleted.
//
// The condition Paused is all it writes, and only on what people look at first: MachineDeployments,
// and those MachineSets and Machines that nobody controls. The controllers that come after it take
// the condition away.
package readonly
