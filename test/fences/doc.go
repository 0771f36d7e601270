// Package fences holds tests of the source tree itself: who imports whom, what
// packages and files are called, what a go.mod may say. It has no code of its own.
//
// The compiler sees a module's requirements and the linter one file; these tests
// ask the go command what is really linked, dependencies of dependencies included.
package fences
