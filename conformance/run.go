package conformance

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/proto/contract"
	"github.com/millwright-dev/millwright/proto/redact"
)

// session is what all checks of a run share.
type session struct {
	*target
	config     Config
	runID      string
	clusterUID string
	// secrets, badSecrets and otherSecrets are the config's, resolved.
	secrets, badSecrets, otherSecrets map[string][]byte
	// credentials are those of them that the driver must tell nobody, by what they are; untold is
	// all that the report must not hold.
	credentials map[string][]byte
	untold      *redact.Secrets
	journal     *journal
	// dice are where random data comes from. Names are drawn elsewhere: they must not repeat.
	dice *rand.ChaCha8
}

// Observer is told how a run goes, as it does. Nil functions are left out.
type Observer struct {
	// Begin is called with the run's id before anything is made, so that Clean can be told it.
	Begin func(runID string)
	// Done is called after each check.
	Done func(Result)
}

// Execute runs the checks that the config chooses, one after the other, and reports what they
// found. The error says why it could not: what is wrong with the config, or why the driver cannot
// be reached. A check that fails is in the report alone. When ctx ends, the check under way cleans
// up, and no other begins.
func Execute(ctx context.Context, c Config, o Observer) (*Report, error) {
	s, err := begin(ctx, c)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if o.Begin != nil {
		o.Begin(s.runID)
	}
	report := s.newReport()
	for _, check := range s.config.chosen() {
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
	return report, s.settle()
}

// newReport returns a report without results.
func (s *session) newReport() *Report {
	transport, _, _ := strings.Cut(s.config.Endpoint, ":")
	return &Report{
		RunID: s.runID, Driver: s.info.GetName(), Version: s.info.GetVendorVersion(), Package: contract.DriverPackage, Revision: contract.Revision,
		DriverRevision: s.info.GetContractRevision(), Profile: s.config.Profile, Transport: transport, Seed: s.config.Seed,
		Began: time.Now(), Hooks: s.backend != nil,
	}
}

// begin opens a session of a new run.
func begin(ctx context.Context, c Config) (*session, error) {
	if c.OwnChecks != "" {
		own, err := loadOwn(ctx, c.OwnChecks)
		if err != nil {
			return nil, err
		}
		c.Own = append(slices.Clone(c.Own), own...)
	}
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	return open(ctx, c, strings.ToLower(random()[:12]))
}

// try runs a check, if it can be run.
func (s *session) try(ctx context.Context, c Check) Result {
	result := s.outcome(ctx, c)
	result.ID, result.Level, result.Musts, result.Rule = c.ID, c.Level, c.Musts, c.Rule
	if why, waived := s.config.Waive[c.ID]; waived && (result.Outcome == Failed || result.Outcome == NotRun) {
		result.Outcome, result.Reason = Waived, why
	}
	return result
}

// outcome is what came of a check.
func (s *session) outcome(ctx context.Context, c Check) Result {
	if !s.has(c.Feature) {
		return Result{Outcome: NotApplicable, Reason: "the driver does not announce " + c.Feature.String()}
	}
	if c.Hooks && s.backend == nil {
		return Result{Outcome: NotRun, Reason: "it has to look into the cloud: name its hooks as backend"}
	}
	if c.Proxy && s.config.FaultProxy == "" {
		return Result{Outcome: NotRun, Reason: "it has the cloud's requests fail: put a fault-proxy between, and name where it is controlled as faultProxy"}
	}
	if c.Launch && s.driver.Process() == nil {
		return Result{Outcome: NotRun, Reason: "it has to end the driver's process: have it started, by an endpoint exec:///path"}
	}
	if err := s.reach(ctx); err != nil {
		return Result{Outcome: Failed, Breaches: []string{"the driver is gone: " + err.Error()}}
	}
	return newTrial(s).result(ctx, c)
}

// open connects, and begins a journal.
func open(ctx context.Context, c Config, runID string) (*session, error) {
	s := &session{config: c, runID: runID, clusterUID: "conformance-" + runID, dice: dice(c.Seed)}
	var errs [3]error
	s.secrets, errs[0] = resolve(c.Secrets)
	s.badSecrets, errs[1] = resolve(c.BadSecrets)
	s.otherSecrets, errs[2] = resolve(c.OtherSecrets)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	s.findCredentials()
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

func dice(seed uint64) *rand.ChaCha8 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.NewChaCha8(key)
}

func (s *session) close() {
	s.journal.close()
	s.target.close()
}

// settle removes the journal of a run that left nothing, else it says what.
func (s *session) settle() error {
	left, err := readJournal(s.config.State, s.runID)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%d machines may be left: clean up after the run %s", len(left), s.runID)
	}
	return os.Remove(journalPath(s.config.State, s.runID))
}

// wants says whether a check is to be run.
func (c Config) wants(check Check) bool {
	if c.Tier != "" && c.Tier != check.Tier || !c.Profile.has(check) {
		return false
	}
	return len(c.Focus) == 0 || slices.Contains(c.Focus, check.ID) || slices.Contains(c.Focus, group(check.ID))
}

// chosen are the checks that are to be run.
func (c Config) chosen() []Check {
	return slices.DeleteFunc(append(Checks(), c.own()...), func(check Check) bool { return !c.wants(check) })
}

// Clean deletes what a run has left, also one that was killed, and returns how many machines it
// asked the driver about. It is safe to repeat.
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
	t := newTrial(s)
	for _, e := range left {
		inGoroutine(func() {
			m := &machine{t: t, ref: e.ref(), cluster: e.Cluster, spec: c.ProviderSpec, secrets: s.secrets, intended: true}
			m.gone(ctx)
		})
	}
	if len(t.breaches) > 0 {
		return len(left), errors.New(strings.Join(t.breaches, "\n"))
	}
	return len(left), s.settle()
}

// Run runs the checks as subtests of a Go test: "group/name". A MUST that is broken fails its test,
// a SHOULD is logged, and what cannot be run is skipped, or fails where a profile wants it.
func Run(t *testing.T, c Config) {
	t.Helper()
	s, err := begin(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for _, check := range s.config.chosen() {
		t.Run(check.ID, func(t *testing.T) {
			result := s.try(t.Context(), check)
			switch result.Outcome {
			case NotRun, Waived:
				if s.config.Profile != "" && check.Level == Must {
					t.Errorf("%s, so the profile %s is not tried whole: %s", result.Outcome, s.config.Profile, result.Reason)
				}
				t.Skip(result.Reason)
			case NotApplicable:
				t.Skip(result.Reason)
			case Failed:
				for _, breach := range result.Breaches {
					if check.Level == Must {
						t.Error(breach)
						continue
					}
					t.Log(breach)
				}
			case Passed:
			}
		})
	}
	if err := s.settle(); err != nil {
		t.Error(err)
	}
}
