package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// session is what all checks of a run share.
type session struct {
	*target
	config     Config
	clusterUID string
	// secrets, badSecrets and otherSecrets are the config's, resolved.
	secrets, badSecrets, otherSecrets map[string][]byte
	journal                           *journal
}

// Observer is told how a run goes, as it does. Nil functions are left out.
type Observer struct {
	// Begin is called with the run's id before anything is made, so that Clean can be told it.
	Begin func(runID string)
	// Done is called after each check.
	Done func(Result)
}

// Execute runs the checks that the config chooses, one after the other, and reports what they found. The error says why it could
// not: what is wrong with the config, or why the driver cannot be reached. A check that fails is in the report alone. When
// ctx ends, the check under way cleans up, and no other begins.
func Execute(ctx context.Context, c Config, o Observer) (*Report, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	runID := strings.ToLower(random()[:12])
	s, err := open(ctx, c, runID)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if o.Begin != nil {
		o.Begin(runID)
	}
	report := &Report{RunID: runID, Driver: s.info.GetName(), Version: s.info.GetVendorVersion(), Began: time.Now(), Hooks: s.backend != nil}
	for _, check := range Checks() {
		if !c.wants(check.ID) {
			continue
		}
		result := s.try(ctx, check)
		if report.Interrupted = ctx.Err() != nil; report.Interrupted {
			// What it was about to show nobody knows.
			break
		}
		report.Results = append(report.Results, result)
		if o.Done != nil {
			o.Done(result)
		}
	}
	report.Duration = time.Since(report.Began)
	return report, s.settle(runID)
}

// try runs a check, if it can be run.
func (s *session) try(ctx context.Context, c Check) Result {
	skip := func(why string) Result {
		return Result{ID: c.ID, Level: c.Level, Rule: c.Rule, Outcome: NotRun, Reason: why}
	}
	if !s.has(c.Feature) {
		return skip("the driver does not announce " + c.Feature.String())
	}
	if c.Hooks && s.backend == nil {
		return skip("it has to look into the cloud: name its hooks as backend")
	}
	result := (&trial{session: s}).result(ctx, c)
	if why, waived := s.config.Waive[c.ID]; waived && result.Outcome == Failed {
		result.Outcome, result.Reason = Waived, why
	}
	return result
}

// open connects, and begins a journal.
func open(ctx context.Context, c Config, runID string) (*session, error) {
	s := &session{config: c, clusterUID: "conformance-" + runID}
	var errs [3]error
	s.secrets, errs[0] = resolve(c.Secrets)
	s.badSecrets, errs[1] = resolve(c.BadSecrets)
	s.otherSecrets, errs[2] = resolve(c.OtherSecrets)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	var err error
	if s.target, err = connect(ctx, c); err != nil {
		return nil, err
	}
	if s.journal, err = openJournal(c.State, runID); err != nil {
		s.target.close()
		return nil, err
	}
	return s, nil
}

func (s *session) close() {
	s.journal.close()
	s.target.close()
}

// settle removes the journal of a run that left nothing, else it says what.
func (s *session) settle(runID string) error {
	left, err := readJournal(s.config.State, runID)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%d machines may be left: clean up after the run %s", len(left), runID)
	}
	return os.Remove(journalPath(s.config.State, runID))
}

// wants says whether a check is to be run.
func (c Config) wants(id string) bool {
	return len(c.Focus) == 0 || slices.Contains(c.Focus, id) || slices.Contains(c.Focus, group(id))
}

// Clean deletes what a run has left, also one that was killed, and returns how many machines it asked the driver about. It is safe
// to repeat.
func Clean(ctx context.Context, c Config, runID string) (int, error) {
	c, err := c.complete()
	if err != nil {
		return 0, err
	}
	left, err := readJournal(c.State, runID)
	if err != nil {
		return 0, err
	}
	s, err := open(ctx, c, runID)
	if err != nil {
		return 0, err
	}
	defer s.close()
	t := &trial{session: s}
	for _, e := range left {
		inGoroutine(func() {
			m := &machine{t: t, ref: e.ref(), cluster: e.Cluster, spec: c.ProviderSpec, secrets: s.secrets, intended: true}
			m.gone(ctx)
		})
	}
	if len(t.breaches) > 0 {
		return len(left), errors.New(strings.Join(t.breaches, "\n"))
	}
	return len(left), s.settle(runID)
}

// Run runs the checks as subtests of a Go test: "group/name". A MUST that is broken fails its test, a SHOULD is logged, and what
// cannot be run is skipped.
func Run(t *testing.T, c Config) {
	t.Helper()
	c, err := c.complete()
	if err != nil {
		t.Fatal(err)
	}
	runID := strings.ToLower(random()[:12])
	s, err := open(t.Context(), c, runID)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for _, check := range Checks() {
		if !c.wants(check.ID) {
			continue
		}
		t.Run(check.ID, func(t *testing.T) {
			result := s.try(t.Context(), check)
			switch result.Outcome {
			case NotRun:
				t.Skip(result.Reason)
			case Failed:
				for _, breach := range result.Breaches {
					if check.Level == Must {
						t.Error(breach)
						continue
					}
					t.Log(breach)
				}
			case Passed, Waived:
			}
		})
	}
	if err := s.settle(runID); err != nil {
		t.Error(err)
	}
}
