// Package fleettest runs the controllers of sets and deployments against a real API server, and plays the parts that are
// not theirs. It is for tests only.
package fleettest
