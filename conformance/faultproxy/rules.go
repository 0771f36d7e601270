package faultproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Rule breaks the requests that it matches. The first one that does, and is not used up, rules a
// request.
type Rule struct {
	// Method, Port and Path say which requests: HTTP methods with | between them, the port that
	// they came to, an expression that is found in the path. Empty ones match all.
	Method string `json:"method,omitempty"`
	Port   string `json:"port,omitempty"`
	Path   string `json:"path,omitempty"`
	// After is how many matching requests pass first, Times how many are broken then; 0: all.
	After int `json:"after,omitempty"`
	Times int `json:"times,omitempty"`
	// Delay holds a request back before anything else happens. Alone, it does no more than that.
	Delay Duration `json:"delay,omitempty"`
	// Drop ends the connection without an answer: "before" the service gets the request, or "after"
	// it has done it.
	Drop string `json:"drop,omitempty"`
	// Truncate breaks the answer off after so many bytes of its body; the service has done what it
	// was asked. 0: it does not.
	Truncate int `json:"truncate,omitempty"`
	// Status, Header and Body are an answer in the service's place; the service gets nothing.
	Status int               `json:"status,omitempty"`
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
	// Hits is how many requests matched so far. It is told, never read.
	Hits int `json:"hits"`
}

const (
	dropBefore = "before"
	dropAfter  = "after"
)

// Duration is written as Go writes durations: "1.5s".
type Duration time.Duration

// UnmarshalJSON reads a duration.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf("read duration: %w", err)
	}
	parsed, err := time.ParseDuration(text)
	*d = Duration(parsed)
	return err
}

// MarshalJSON writes a duration.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// rules are the rules in force. They are safe for concurrent use.
type rules struct {
	mu    sync.Mutex
	given []Rule
	paths []*regexp.Regexp
}

// set replaces all rules, unless one of them cannot be; hits begin anew.
func (r *rules) set(given []Rule) error {
	paths := make([]*regexp.Regexp, len(given))
	for i := range given {
		path, err := given[i].check()
		if err != nil {
			return fmt.Errorf("rule %d: %w", i, err)
		}
		paths[i], given[i].Hits = path, 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given, r.paths = given, paths
	return nil
}

// check says what is wrong with a rule, and returns the expression of its path.
func (r Rule) check() (*regexp.Regexp, error) {
	path, err := regexp.Compile(r.Path)
	if err != nil {
		return nil, err
	}
	breaks := slices.DeleteFunc([]bool{r.Drop != "", r.Status != 0, r.Truncate != 0}, func(is bool) bool { return !is })
	switch {
	case r.Method != strings.ToUpper(r.Method):
		return nil, fmt.Errorf("method is %q: methods are written in capitals, as GET|HEAD", r.Method)
	case r.Drop != "" && r.Drop != dropBefore && r.Drop != dropAfter:
		return nil, fmt.Errorf("drop is %q, neither before nor after", r.Drop)
	case r.Status != 0 && (r.Status < 200 || r.Status > 599):
		return nil, fmt.Errorf("%d is no status", r.Status)
	case len(breaks) > 1:
		return nil, errBoth
	case min(r.Truncate, r.After, r.Times) < 0:
		return nil, fmt.Errorf("truncate is %d, after %d and times %d: none is below 0", r.Truncate, r.After, r.Times)
	}
	return path, r.checkAnswer()
}

// checkAnswer says whether the rule has parts of an answer and no status, without which there is
// none.
func (r Rule) checkAnswer() error {
	switch {
	case r.Status == 0 && r.Body != "":
		return errors.New("body is that of an answer: give its status, too")
	case r.Status == 0 && len(r.Header) > 0:
		return errors.New("header is that of an answer: give its status, too")
	}
	return nil
}

var errBoth = errors.New("drop, status and truncate exclude each other")

func (r *rules) list() []Rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Rule{}, r.given...)
}

// pick returns the rule that breaks a request.
func (r *rules) pick(method, port, path string) (Rule, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.given {
		rule := &r.given[i]
		if rule.Method != "" && !slices.Contains(strings.Split(rule.Method, "|"), method) || rule.Port != "" && rule.Port != port || !r.paths[i].MatchString(path) {
			continue
		}
		rule.Hits++
		if rule.Hits > rule.After && (rule.Times == 0 || rule.Hits <= rule.After+rule.Times) {
			return *rule, true
		}
	}
	return Rule{}, false
}
