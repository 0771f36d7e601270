// Package skeleton begins drivers. A skeleton is the example driver under another name: a Go module
// of its own, outside this repository, that builds and keeps to the contract from the first minute.
package skeleton
