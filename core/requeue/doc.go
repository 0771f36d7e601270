// Package requeue says when a controller looks at an object again: after a failure, after a change
// of what the object owns, or after a time.
package requeue
