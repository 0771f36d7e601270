// Package fleet is what the controllers of MachineSets and MachineDeployments have in common: what they read off a
// Machine, how they own objects, and how events find their way to owners.
package fleet
