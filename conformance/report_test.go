package conformance

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	protofiles "github.com/millwright-dev/millwright/proto"
)

func TestReportIsWrittenInEachFormat(t *testing.T) {
	r := &Report{
		Driver: "saw", Version: "v1", Duration: 3 * time.Second, Profile: ProfileBasic, Transport: "unix",
		Results: []Result{
			{ID: "create/happy", Level: Must, Musts: []int{71, 77}, Rule: "a rule", Outcome: Passed, Duration: time.Second},
			{ID: "create/again", Level: Must, Rule: "another rule", Outcome: Failed, Breaches: []string{"two VMs & more"}},
			{ID: "delete/happy", Level: Must, Outcome: Waived, Reason: "slow cloud", Breaches: []string{"left one"}},
			{ID: "identity/health", Level: Should, Outcome: Failed, Breaches: []string{"no health"}},
			{ID: "spec/schema", Level: Must, Musts: []int{112, 113}, Outcome: NotRun, Reason: "no feature"},
		},
	}
	rules := strconv.Itoa(len(protofiles.Musts()))
	var text, junit strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteJUnit(&junit); err != nil {
		t.Fatal(err)
	}
	said, others := "", 0
	for line := range strings.Lines(text.String()) {
		if strings.HasPrefix(line, "not tried:") && !strings.Contains(line, "spec/schema") && !strings.Contains(line, " M9:") {
			others++
			continue
		}
		said += line
	}
	if others < 2 {
		t.Errorf("of other rules it says nothing:\n%s", text.String())
	}
	if diff := cmp.Diff(`not run: spec/schema (MUST)
    no feature
waived: delete/happy (MUST)
    slow cloud
    left one
failed: create/again (MUST)
    two VMs & more
    the contract: another rule
failed: identity/health (SHOULD)
    no health
    the contract: 
not tried: M9: nobody but the driver knows what in its manifest is a secret
not tried: M112 M113: spec/schema not run: no feature
MUST checks: 1 passed, 1 failed, 1 waived, 1 not run, 0 not applicable
SHOULD checks: 0 passed, 1 failed, 0 waived, 0 not run, 0 not applicable
saw v1: does not conform, profile basic; 2 of `+rules+` MUSTs tried, `+strconv.Itoa(len(protofiles.Musts())-2)+` not, on unix, in 3s
`, said); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(`<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="saw" tests="5" failures="1" skipped="3" time="3">
  <testcase classname="create" name="create/happy" time="1"></testcase>
  <testcase classname="create" name="create/again" time="0">
    <failure message="another rule">two VMs &amp; more</failure>
  </testcase>
  <testcase classname="delete" name="delete/happy" time="0">
    <skipped message="waived: slow cloud"></skipped>
  </testcase>
  <testcase classname="identity" name="identity/health" time="0">
    <skipped message="a SHOULD is broken">no health</skipped>
  </testcase>
  <testcase classname="spec" name="spec/schema" time="0">
    <skipped message="not run: no feature"></skipped>
  </testcase>
</testsuite>
`, junit.String()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatWasNotTriedStandsInTheJSON(t *testing.T) {
	r := &Report{Interrupted: true, Results: []Result{
		{Level: Must, Musts: []int{71}, Outcome: Passed}, {ID: "spec/schema", Level: Must, Musts: []int{71, 112}, Outcome: NotApplicable, Reason: "no feature"},
	}}
	var written strings.Builder
	if err := r.WriteJSON(&written); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Verdict  Verdict
		NotTried map[int]string
	}
	if err := json.Unmarshal([]byte(written.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Verdict != Interrupted || got.NotTried[71] != "" || got.NotTried[112] != "spec/schema not applicable: no feature" || got.NotTried[1] != "the run was interrupted" {
		t.Errorf("it says %+v", got)
	}
}

func TestVerdicts(t *testing.T) {
	passed, failed := Result{Level: Must, Outcome: Passed}, Result{Level: Must, Outcome: Failed}
	notRun, waived := Result{Level: Must, Outcome: NotRun}, Result{Level: Must, Outcome: Waived}
	for name, tc := range map[string]struct {
		report Report
		want   Verdict
	}{
		"all of a profile":                        {Report{Profile: ProfileBasic, Results: []Result{passed, passed}}, Conforms},
		"all that apply":                          {Report{Profile: ProfileBasic, Results: []Result{passed, {Level: Must, Outcome: NotApplicable}}}, Conforms},
		"a SHOULD is broken":                      {Report{Profile: ProfileBasic, Results: []Result{passed, {Level: Should, Outcome: Failed}}}, Conforms},
		"one is waived":                           {Report{Profile: ProfileBasic, Results: []Result{passed, waived}}, NoBreach},
		"all are waived":                          {Report{Profile: ProfileBasic, Results: []Result{waived}}, NoBreach},
		"one is not run":                          {Report{Profile: ProfileFault, Results: []Result{passed, notRun}}, NoBreach},
		"no profile was asked for":                {Report{Results: []Result{passed}}, NoBreach},
		"nothing was tried":                       {Report{Profile: ProfileBasic}, NoBreach},
		"one is broken":                           {Report{Profile: ProfileBasic, Results: []Result{passed, failed}}, Breaks},
		"one is broken, one not run":              {Report{Results: []Result{notRun, failed}}, Breaks},
		"it was interrupted":                      {Report{Profile: ProfileBasic, Interrupted: true, Results: []Result{passed}}, Interrupted},
		"it was interrupted after one was broken": {Report{Interrupted: true, Results: []Result{failed}}, Breaks},
	} {
		if got := tc.report.Verdict(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
