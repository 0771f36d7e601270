// Package instance holds core's own terms for a VM, for how a call to its driver ended, and for
// what a poll found. It is pure: core/driver fills these values in and core/lifecycle decides by
// them. Neither package shares wire types with the other.
package instance
