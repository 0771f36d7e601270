package conformance

import "maps"

// untried are the numbered rules of the contract that no check tries, and why.
var untried = map[int]string{
	9:   "nobody but the driver knows what in its manifest is a secret",
	26:  "nothing from outside makes a driver unready",
	99:  "a page of 8 MiB takes thousands of VMs",
	106: "a VM would have to print something that nothing else holds",
	114: "nothing tells which fields are addresses",
	118: "a finding about a secret field takes a spec that only the driver knows",
}

// Untried returns the numbers of the contract's rules that no check tries, and why.
func Untried() map[int]string { return maps.Clone(untried) }
