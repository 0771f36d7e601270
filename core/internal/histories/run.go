// Package histories sets how many generated histories the property tests of a package are tried on.
package histories

import (
	"flag" //nolint:depguard // rapid is told by flags of the test's binary, and by nothing else
	"fmt"
	"os"
	"testing"
)

// each is how many histories each property is tried on, unless -rapid.checks says otherwise. With
// -short few is set, of which rapid tries a fifth.
const (
	each = "10000"
	few  = "1000"
)

// Run runs the tests of a package, which must import pgregory.net/rapid, and returns their exit
// code. It is for TestMain.
func Run(m *testing.M) int {
	flag.Parse() //nolint:revive // nobody but TestMain calls it
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	checks := each
	if testing.Short() {
		checks = few
	}
	// rapid's files of failures are for people; a seed stands in the output as well.
	for name, value := range map[string]string{"rapid.checks": checks, "rapid.nofailfile": "true"} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
	}
	return m.Run()
}
