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
	for c := range comments() {
		if at := bare.FindStringIndex(c.text); at != nil {
			t.Errorf("%s has a MUST without a number: …%s", c.file, c.text[at[0]:min(at[0]+80, len(c.text))])
		}
	}
	if len(Musts()) < 100 {
		t.Errorf("found %d rules", len(Musts()))
	}
}

// A sentence such as "MUST be set." says nothing without what it stands on.
func TestMustsNameWhatTheyAreAbout(t *testing.T) {
	subjects := map[int]string{}
	for _, m := range Musts() {
		subjects[m.Number] = m.Subject
		if m.Subject == "" {
			t.Errorf("M%d stands on nothing that has a name, in %s", m.Number, m.File)
		}
	}
	for number, want := range map[int]string{
		1: "HandshakeService", 2: "HandshakeService.GetPluginInfo", 5: "GetPluginInfoResponse.name", 9: "GetPluginInfoResponse.manifest",
		15: "GetCapabilitiesResponse.features", 37: "MachineService", 42: "MachineService.CreateMachine", 71: "MachineRef",
		76: "MachineState.MACHINE_STATE_FAILED", 93: "CreateMachineRequest.user_data", 94: "CreateMachineRequest.tags",
		95: "CreateMachineResponse.machine", 122: "ErrorReason", 127: "PartialState", 128: "PartialState.last_known_state",
	} {
		if subjects[number] != want {
			t.Errorf("M%d is about %q, want %q", number, subjects[number], want)
		}
	}
}
