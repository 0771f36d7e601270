// Package top shows how MachineDeployments get on: how many machines are available, what the others
// do, how many join and go a minute, and how long it takes at that rate.
package top
