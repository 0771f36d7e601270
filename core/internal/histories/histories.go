// Package histories sets how many generated histories the property tests of a package are tried on.
package histories

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// each is how many histories each property is tried on, unless -rapid.checks says otherwise.
const each = "10000"

// Main runs the tests of a package. It takes the place of its TestMain, and needs rapid's flags, so the package's tests
// must import pgregory.net/rapid.
func Main(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	// rapid's files of failures are for people; a seed stands in the output as well.
	for name, value := range map[string]string{"rapid.checks": each, "rapid.nofailfile": "true"} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}
