// Package conformance shows whether a driver keeps to the contract, whatever language it is written
// in: it calls the driver over the wire, as core would, and knows nothing else of it. Checks are
// listed in one registry (Checks); the command driver-conformance and Run, for Go tests, run them.
//
// Each check stands for one rule of the contract, and each run has a cluster uid of its own:
// whatever it makes carries that uid, and nothing else is ever deleted. What a run is about to make
// is written to a journal first, so that Clean finds it also after a run that was killed.
//
// Where the cloud behind a driver is a test cloud that serves millwright.backend.v1alpha1, checks
// look into it and have it misbehave. Checks that need that say "not run" without it; none of them
// passes.
package conformance
