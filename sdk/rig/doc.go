// Package rig runs a driver under test as core meets it: over a real unix socket. What the driver
// answers is checked against the contract, as far as one request and its answer can show a breach.
// A breach fails the test.
package rig
