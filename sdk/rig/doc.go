// Package rig runs a driver under test as core meets it: over a real unix socket. Whatever the
// driver answers is checked against the contract, as far as one request and its answer can show a
// breach; a breach fails the test.
package rig
