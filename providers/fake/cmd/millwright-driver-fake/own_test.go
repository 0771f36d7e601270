package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/millwright-dev/millwright/conformance"
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
