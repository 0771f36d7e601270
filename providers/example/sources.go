// Package example holds the sources of the example driver, of which `millwright driver init` makes
// others.
package example

import "embed"

// Sources are the files that a new driver begins with, by their paths in this folder.
//
//go:embed go.mod go.sum conformance.yaml cmd/*/main.go cmd/*/driver.go cmd/*/cloud.go cmd/*/conformance_test.go
var Sources embed.FS
