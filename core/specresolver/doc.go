// Package specresolver says what a machine is made from, and with which secrets. Inherit puts a
// machine's spec together with those of its MachineClass and its Cluster. Check holds the result
// to the operator's rules, and returns a [Checked]. Only a Checked can read Secrets: no Secret is
// read before the rules have passed for exactly that spec.
//
// Read inherit.go, rules.go and checked.go first.
package specresolver
