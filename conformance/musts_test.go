package conformance

import (
	"testing"

	protofiles "github.com/millwright-dev/millwright/proto"
)

// Each numbered rule of the contract is tried by a check, or it is said why not, and each number
// that a check names is a rule's.
func TestChecksTryTheContract(t *testing.T) {
	tried := map[int]string{}
	for _, c := range Checks() {
		if c.Level == Must && len(c.Musts) == 0 {
			t.Errorf("%s names no rule of the contract", c.ID)
		}
		for _, must := range c.Musts {
			tried[must] = c.ID
		}
	}
	rules := map[int]bool{}
	for _, m := range protofiles.Musts() {
		rules[m.Number] = true
		if (tried[m.Number] != "") == (untried[m.Number] != "") {
			t.Errorf("M%d is to be named by a check, or in untried, not both: %s", m.Number, m.Sentence)
		}
	}
	for must, id := range tried {
		if !rules[must] {
			t.Errorf("%s names M%d, which is no rule", id, must)
		}
	}
	for must := range untried {
		if !rules[must] {
			t.Errorf("untried names M%d, which is no rule", must)
		}
	}
}
