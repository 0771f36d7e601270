// Package audit counts who wrote what, from a kube-apiserver's audit log.
package audit

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// Write is one kind of write.
type Write struct {
	// Verb is create, update, patch, delete or deletecollection.
	Verb string
	// Resource is the plural, with /subresource where there is one.
	Resource string
}

// Writes counts writes that the API server has carried out.
type Writes map[Write]int

// event is as much of audit.k8s.io/v1 Event as is read.
type event struct {
	Verb           string    `json:"verb"`
	Stage          string    `json:"stage"`
	StageTimestamp time.Time `json:"stageTimestamp"`
	User           struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// CountFile counts the writes that user made since an instant, in the log at path.
func CountFile(path, user string, since time.Time) (writes Writes, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return Count(file, user, since)
}

// Count counts the writes that user made since an instant. A last line that is not whole yet is left out.
func Count(log io.Reader, user string, since time.Time) (Writes, error) {
	writes := Writes{}
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return writes, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read a line of the audit log: %w", err)
		}
		if e.User.Username == user && e.counts(since) {
			writes[e.write()]++
		}
	}
}

func (e *event) counts(since time.Time) bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return e.Stage == "ResponseComplete" && e.ResponseStatus.Code < 300 && !e.StageTimestamp.Before(since)
	}
	return false
}

func (e *event) write() Write {
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return Write{Verb: e.Verb, Resource: resource}
}

// Budgeted sums what counts towards core's budget: all but its Lease, its Events and evictions.
func (w Writes) Budgeted() int {
	n := 0
	for write, count := range w {
		switch write.Resource {
		case "leases", "events", "pods/eviction":
		default:
			n += count
		}
	}
	return n
}

// Of sums the writes to one resource.
func (w Writes) Of(resource string) int {
	n := 0
	for write, count := range w {
		if write.Resource == resource {
			n += count
		}
	}
	return n
}

// String lists the writes, one kind a line, in a stable order.
func (w Writes) String() string {
	var b strings.Builder
	byName := func(a, b Write) int { return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb)) }
	for _, write := range slices.SortedFunc(maps.Keys(w), byName) {
		fmt.Fprintf(&b, "%6d  %s %s\n", w[write], write.Verb, write.Resource)
	}
	return b.String()
}
