// Package contract is what the generated code cannot say: the contract's sizes, deadlines and
// reasons as Go values, and checks of a message's shape. Core calls the checks before it sends and
// on what it gets. The SDK calls them on what it gets; its test rig calls them on what a driver
// answers. They are plain Go and look at one message alone: nothing here does I/O or remembers
// anything.
package contract
