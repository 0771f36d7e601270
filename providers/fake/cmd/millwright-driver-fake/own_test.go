package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/millwright-dev/millwright/conformance"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// An executable with checks of an author's own can call a driver that the harness has started.
func TestOwnChecksOfALaunchedDriver(t *testing.T) {
	s := newScene(t)
	own := filepath.Join(t.TempDir(), "own")
	script := `#!/bin/sh
case "$1" in
list) echo '[{"id":"own/socket","level":"MUST","rule":"It serves."}]';;
run) socket=$(sed 's|.*"endpoint":"unix://\([^"]*\)".*|\1|'); test -S "$socket" && echo '{}' || echo '{"breaches":["no socket"]}';;
esac
`
	if err := os.WriteFile(own, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := s.config()
	c.Endpoint, c.OwnChecks, c.Focus, c.DriverLog = s.launched(), own, []string{"own"}, ""
	report, err := conformance.Execute(t.Context(), c, conformance.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) != 1 || report.Results[0].Outcome != conformance.Passed {
		t.Errorf("%+v", report.Results)
	}
}

// What a check in Go asks for by NewCreate is made, and gone when the check has ended.
func TestOwnChecksInGoLeaveNothing(t *testing.T) {
	s := newScene(t)
	s.start()
	c := s.config()
	c.Own = []conformance.OwnCheck{{
		ID: "own/addresses", Level: conformance.Must, Rule: "A new machine has its address at once.",
		Run: func(ctx context.Context, o *conformance.OwnTrial) {
			answer, err := o.Machines.CreateMachine(ctx, o.NewCreate())
			if err != nil || len(answer.GetMachine().GetAddresses()) == 0 {
				o.Errorf("a create answers %v (%v)", answer, err)
			}
		},
	}}
	c.Focus = []string{"own"}
	report, err := conformance.Execute(t.Context(), c, conformance.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) != 1 || report.Results[0].Outcome != conformance.Passed {
		t.Errorf("%+v", report.Results)
	}
	totals, err := s.hooks.GetTotals(t.Context(), &backendv1alpha1.GetTotalsRequest{})
	if err != nil || totals.GetVmsCreated() != 1 || totals.GetResourcesLeft() != 0 {
		t.Errorf("made and left are %v (%v)", totals, err)
	}
}
