// Package admission refuses what is wrong with a spec when it is applied: by the rules of the
// operator, and by what the driver finds without its cloud. It is a courtesy: whatever it lets
// through, because it is off or cannot reach a driver, shows up in the conditions of Machines.
package admission
