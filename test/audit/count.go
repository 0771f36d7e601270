// Package audit counts who wrote what, from a kube-apiserver's audit log.
package audit

import (
	"cmp"
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

// CountFile counts the writes that user made since an instant, in the log at path.
func CountFile(path, user string, since time.Time) (Writes, error) {
	return countFile(path, user, since, (*event).carriedOut)
}

// CountFailures counts the writes of user since an instant that the API server answered with an
// error of its own.
func CountFailures(path, user string, since time.Time) (Writes, error) {
	return countFile(path, user, since, (*event).failed)
}

func countFile(path, user string, since time.Time, counts func(*event) bool) (writes Writes, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return count(file, user, since, counts)
}

// Count counts the writes that user made since an instant. A last line that is not whole yet is
// left out.
func Count(log io.Reader, user string, since time.Time) (Writes, error) {
	return count(log, user, since, (*event).carriedOut)
}

func count(log io.Reader, user string, since time.Time, counts func(*event) bool) (Writes, error) {
	writes := Writes{}
	for e, err := range events(log) {
		if err != nil {
			return nil, err
		}
		if e.User.Username == user && counts(e) && !e.StageTimestamp.Before(since) {
			writes[e.write()]++
		}
	}
	return writes, nil
}

// Budgeted says whether the write counts towards core's budget. All do but those of its Lease, its
// Events and evictions. Questions about who may read its metrics do not count either: they are
// asked by POST and write nothing.
func (w Write) Budgeted() bool {
	switch w.Resource {
	case "leases", "events", "pods/eviction", "tokenreviews", "subjectaccessreviews":
		return false
	}
	return true
}

// Budgeted sums what counts towards core's budget.
func (w Writes) Budgeted() int {
	n := 0
	for write, count := range w {
		if write.Budgeted() {
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
