// Package docs does what the documentation says, to the letter: its commands work. It has no code
// of its own.
package docs
