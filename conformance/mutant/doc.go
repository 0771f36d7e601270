// Package mutant breaks a good driver, one rule of the contract at a time: it stands between the
// harness and the driver and changes what passes. Each mutant names the check that has to catch it.
// A check that catches none could not fail, and would prove nothing.
package mutant
