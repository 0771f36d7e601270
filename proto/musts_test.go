package protofiles

import (
	"regexp"
	"strings"
	"testing"
)

// bare is a rule without a number.
var bare = regexp.MustCompile(`MUST(?: NOT)?(?: (?:[^N\[]|N[^O]|\[[^M])|$)`)

// Each MUST of the contract has a number of its own, and none is left out.
func TestMustsAreNumbered(t *testing.T) {
	for i, m := range Musts() {
		if m.Number != i+1 {
			t.Fatalf("the number after M%d is M%d, in %s: %s", i, m.Number, m.File, m.Sentence)
		}
		if !strings.Contains(m.Sentence, "MUST") || len(m.Sentence) > 500 {
			t.Errorf("M%d is told as %q", m.Number, m.Sentence)
		}
	}
	for path, comment := range comments() {
		if at := bare.FindStringIndex(comment); at != nil {
			t.Errorf("%s has a MUST without a number: …%s", path, comment[at[0]:min(at[0]+80, len(comment))])
		}
	}
	if len(Musts()) < 100 {
		t.Errorf("found %d rules", len(Musts()))
	}
}
