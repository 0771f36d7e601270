// Package story tells what has become of a Machine, step by step: when each of its conditions came
// to be as it is, what events said meanwhile, and how long after the Machine was made.
package story
