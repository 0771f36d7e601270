package conformance

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	protofiles "github.com/millwright-dev/millwright/proto"
)

// Outcome is how a check ended.
type Outcome string

// The outcomes. NotRun is no pass: what a check needs was not there. NotApplicable is none either,
// and nothing is missing: the check is about a feature or a transport that the driver does not
// have.
const (
	Passed        Outcome = "passed"
	Failed        Outcome = "failed"
	Waived        Outcome = "waived"
	NotRun        Outcome = "not run"
	NotApplicable Outcome = "not applicable"
)

// Result is what came of one check.
type Result struct {
	ID    string `json:"id"`
	Level Level  `json:"level"`
	// Musts are the numbers of the contract's rules that it tries.
	Musts   []int   `json:"musts,omitempty"`
	Rule    string  `json:"rule"`
	Outcome Outcome `json:"outcome"`
	// Reason is why it was not run, does not apply, or was waived.
	Reason string `json:"reason,omitempty"`
	// Breaches are what the driver did against the rule.
	Breaches []string      `json:"breaches,omitempty"`
	Duration time.Duration `json:"nanoseconds"`
}

// Report is what came of a run.
type Report struct {
	RunID string `json:"runID"`
	// Driver and Version are what the driver calls itself.
	Driver  string `json:"driver"`
	Version string `json:"version"`
	// Package and Revision are those of the contract that it was held to, DriverRevision what the
	// driver says of itself.
	Package        string `json:"package"`
	Revision       int32  `json:"revision"`
	DriverRevision int32  `json:"driverRevision"`
	// Profile is the one that was asked for; empty for none.
	Profile Profile `json:"profile,omitempty"`
	// Transport is how the driver was reached: unix, dns or exec.
	Transport string `json:"transport"`
	// Seed is what the run's random data came from.
	Seed uint64 `json:"seed"`
	// Hooks says whether checks could look into the cloud.
	Hooks       bool          `json:"hooks"`
	Interrupted bool          `json:"interrupted,omitempty"`
	Began       time.Time     `json:"began"`
	Duration    time.Duration `json:"nanoseconds"`
	Results     []Result      `json:"results"`
}

// Count returns how many checks of a level ended like that.
func (r *Report) Count(l Level, o Outcome) int {
	n := 0
	for _, one := range r.Results {
		if one.Level == l && one.Outcome == o {
			n++
		}
	}
	return n
}

// Verdict is what a run shows of a driver.
type Verdict string

// The verdicts. Only Conforms says that the driver keeps to the contract: a profile was asked for,
// each of its MUSTs was tried, and none is broken. One that is waived was not.
const (
	Conforms    Verdict = "conforms"
	Breaks      Verdict = "does not conform"
	NoBreach    Verdict = "no breach found"
	Interrupted Verdict = "was not tried to the end"
)

// Verdict says what the run shows.
func (r *Report) Verdict() Verdict {
	passed, apply := r.Count(Must, Passed), 0
	for _, one := range r.Results {
		if one.Level == Must && one.Outcome != NotApplicable {
			apply++
		}
	}
	switch {
	case r.Count(Must, Failed) > 0:
		return Breaks
	case r.Interrupted:
		return Interrupted
	case r.Profile == "" || passed == 0 || passed < apply:
		return NoBreach
	}
	return Conforms
}

// NotTried returns the numbers of the contract's MUSTs of which no check has passed or failed, and
// why.
func (r *Report) NotTried() map[int]string {
	why := map[int]string{}
	others := "its checks were not asked for"
	if r.Interrupted {
		others = "the run was interrupted"
	}
	for _, must := range protofiles.Musts() {
		why[must.Number] = cmp.Or(untried[must.Number], others)
	}
	for _, one := range r.Results {
		for _, must := range one.Musts {
			why[must] = fmt.Sprintf("%s %s: %s", one.ID, one.Outcome, one.Reason)
		}
	}
	for _, one := range r.Results {
		if one.Outcome == Passed || one.Outcome == Failed {
			for _, must := range one.Musts {
				delete(why, must)
			}
		}
	}
	return why
}

// WriteJSON writes the report, its verdict, and the MUSTs that were not tried.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		*Report
		Verdict  Verdict        `json:"verdict"`
		NotTried map[int]string `json:"notTried"`
	}{r, r.Verdict(), r.NotTried()})
}

// writeNotTried writes the MUSTs that were not tried, a line for each reason.
func writeNotTried(out io.Writer, why map[int]string) {
	rules := map[string]string{}
	var reasons []string
	for _, must := range slices.Sorted(maps.Keys(why)) {
		reason := why[must]
		if rules[reason] == "" {
			reasons = append(reasons, reason)
		}
		rules[reason] += fmt.Sprintf(" M%d", must)
	}
	for _, reason := range reasons {
		fmt.Fprintf(out, "not tried:%s: %s\n", rules[reason], reason)
	}
}

// WriteText writes, for people, what is wrong, what was not tried and why, the sums, and the
// verdict.
func (r *Report) WriteText(w io.Writer) error {
	var out strings.Builder
	for _, o := range []Outcome{NotRun, Waived, Failed} {
		for _, one := range r.Results {
			if one.Outcome != o {
				continue
			}
			fmt.Fprintf(&out, "%s: %s (%s)\n", o, one.ID, one.Level)
			if one.Reason != "" {
				fmt.Fprintf(&out, "    %s\n", one.Reason)
			}
			for _, breach := range one.Breaches {
				fmt.Fprintf(&out, "    %s\n", breach)
			}
			if o == Failed {
				fmt.Fprintf(&out, "    the contract: %s\n", one.Rule)
			}
		}
	}
	why := r.NotTried()
	writeNotTried(&out, why)
	for _, l := range []Level{Must, Should} {
		fmt.Fprintf(&out, "%s checks: %d passed, %d failed, %d waived, %d not run, %d not applicable\n", l,
			r.Count(l, Passed), r.Count(l, Failed), r.Count(l, Waived), r.Count(l, NotRun), r.Count(l, NotApplicable))
	}
	verdict := string(r.Verdict())
	if r.Profile != "" {
		verdict += fmt.Sprintf(", profile %s", r.Profile)
	}
	all := len(protofiles.Musts())
	fmt.Fprintf(&out, "%s %s: %s; %d of %d MUSTs tried, %d not, on %s, in %s\n", r.Driver, r.Version, verdict,
		all-len(why), all, len(why), r.Transport, r.Duration.Round(time.Millisecond))
	_, err := io.WriteString(w, out.String())
	return err
}

// The elements of a JUnit report, as CI systems read them.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     float64     `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Group   string     `xml:"classname,attr"`
		Name    string     `xml:"name,attr"`
		Time    float64    `xml:"time,attr"`
		Failure *junitText `xml:"failure"`
		Skipped *junitText `xml:"skipped"`
	}
	junitText struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the report for CI systems. A broken SHOULD is no failure there, as it is none
// of the driver's.
func (r *Report) WriteJUnit(w io.Writer) error {
	suite := junitSuite{Name: r.Driver, Tests: len(r.Results), Failures: r.Count(Must, Failed), Time: r.Duration.Seconds()}
	for _, one := range r.Results {
		c := junitCase{Group: group(one.ID), Name: one.ID, Time: one.Duration.Seconds()}
		switch {
		case one.Outcome == Failed && one.Level == Must:
			c.Failure = &junitText{Message: one.Rule, Text: strings.Join(one.Breaches, "\n")}
		case one.Outcome == Failed:
			c.Skipped = &junitText{Message: "a SHOULD is broken", Text: strings.Join(one.Breaches, "\n")}
		case one.Outcome != Passed:
			c.Skipped = &junitText{Message: fmt.Sprintf("%s: %s", one.Outcome, one.Reason)}
		}
		if c.Skipped != nil {
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
