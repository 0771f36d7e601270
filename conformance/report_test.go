package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReportIsWrittenInEachFormat(t *testing.T) {
	r := &Report{
		Driver: "saw", Version: "v1", Duration: 3 * time.Second,
		Results: []Result{
			{ID: "create/happy", Level: Must, Rule: "a rule", Outcome: Passed, Duration: time.Second},
			{ID: "create/again", Level: Must, Rule: "another rule", Outcome: Failed, Breaches: []string{"two VMs & more"}},
			{ID: "delete/happy", Level: Must, Outcome: Waived, Reason: "slow cloud", Breaches: []string{"left one"}},
			{ID: "identity/health", Level: Should, Outcome: Failed, Breaches: []string{"no health"}},
			{ID: "spec/schema", Level: Must, Outcome: NotRun, Reason: "no feature"},
		},
	}
	var text, junit strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteJUnit(&junit); err != nil {
		t.Fatal(err)
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
saw v1 does not conform: MUST 1 passed, 1 failed, 1 waived, 1 not run; SHOULD 0 passed, 1 failed, 0 waived, 0 not run; 3s
`, text.String()); diff != "" {
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
	if r.Conforms() {
		t.Error("a driver that breaks a MUST conforms")
	}
	r.Results[1].Outcome = Passed
	if !r.Conforms() {
		t.Error("a driver that breaks a SHOULD alone does not conform")
	}
	if r.Interrupted = true; r.Conforms() {
		t.Error("a run that was interrupted shows that a driver conforms")
	}
}
