// Package tier says which tests belong to `make test`, and whether the processes that tests start
// are built with the race detector.
//
// `make test` runs tests with -short and without the race detector. `make test-long` runs all of
// them, with it.
package tier

import "testing"

// Long skips a test that is not of `make test`, with the reason. It is the first line of a test, so
// that test/fences finds it, or the first of a subtest.
func Long(t *testing.T, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("of make test-long: " + why)
	}
}
