// Package guide follows docs/writing-a-driver.md as a newcomer does, to the letter: what stands
// there works. It has no code of its own.
package guide
