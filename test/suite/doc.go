// Package suite is what `make test` and `make test-long` run: which steps there are, in which
// order, and what each of them is made from. Each step is a target of the Makefile, which says how
// the step is done.
//
// `make test` is for every change. What takes long is a part of `make test-long`. A part is run
// where one of its inputs has changed: see [Part.Inputs].
package suite
