// Package rig runs a driver under test over a real unix socket, and checks the shape of all it answers.
package rig
