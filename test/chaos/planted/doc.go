// Package planted builds managers with a bug in them, each of which chaos has to find: a proof that
// finds nothing is none. The bug is put in by an overlay while the manager is built; no source in
// the tree has it.
package planted
