package conformance

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// Outcome is how a check ended.
type Outcome string

// The outcomes. NotRun is no pass: what a check needs was not there.
const (
	Passed Outcome = "passed"
	Failed Outcome = "failed"
	Waived Outcome = "waived"
	NotRun Outcome = "not run"
)

// Result is what came of one check.
type Result struct {
	ID      string  `json:"id"`
	Level   Level   `json:"level"`
	Rule    string  `json:"rule"`
	Outcome Outcome `json:"outcome"`
	// Reason is why it was not run, or waived.
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

// Conforms says whether no MUST is broken, as far as was tried to the end.
func (r *Report) Conforms() bool { return !r.Interrupted && r.Count(Must, Failed) == 0 }

// WriteJSON writes the report as it is.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes, for people, what is wrong, what was not tried and why, and the sums.
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
	verdict := "conforms"
	if !r.Conforms() {
		verdict = "does not conform"
	}
	if r.Interrupted {
		verdict = "was not tried to the end"
	}
	fmt.Fprintf(&out, "%s %s %s: ", r.Driver, r.Version, verdict)
	for _, l := range []Level{Must, Should} {
		fmt.Fprintf(&out, "%s %d passed, %d failed, %d waived, %d not run; ", l,
			r.Count(l, Passed), r.Count(l, Failed), r.Count(l, Waived), r.Count(l, NotRun))
	}
	fmt.Fprintf(&out, "%s\n", r.Duration.Round(time.Millisecond))
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
