// Package sdk serves a driver, written in Go, to Millwright's core.
package sdk
