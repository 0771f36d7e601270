package mutant_test

import (
	"testing"

	"github.com/millwright-dev/millwright/conformance"
	"github.com/millwright-dev/millwright/conformance/mutant"
)

// untried are the checks that no mutant makes fail, and why there is none.
var untried = map[string]string{}

// A check that no mutant can make fail would prove nothing.
func TestEachCheckCanFail(t *testing.T) {
	caught, names := map[string]bool{}, map[string]bool{}
	for _, m := range mutant.All() {
		if names[m.Name] {
			t.Errorf("two mutants are called %s", m.Name)
		}
		caught[m.Check], names[m.Name] = true, true
	}
	known := map[string]bool{}
	for _, c := range conformance.Checks() {
		known[c.ID] = true
		if caught[c.ID] == (untried[c.ID] != "") {
			t.Errorf("%s: give it a mutant, or a note of why it has none in untried; not both", c.ID)
		}
	}
	for id := range caught {
		if !known[id] {
			t.Errorf("there is no check %s to catch a mutant", id)
		}
	}
	for id := range untried {
		if !known[id] {
			t.Errorf("untried: there is no check %s", id)
		}
	}
}
