// Package controllertest runs controllers against a real API server, and plays the parts that are
// not theirs. It is for tests only.
package controllertest
