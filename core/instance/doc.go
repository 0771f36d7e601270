// Package instance says in core's own terms what is known of a VM and how a call to its driver failed.
// It is pure: core/driver fills it in, core/lifecycle decides by it, and neither sees the wire.
package instance
