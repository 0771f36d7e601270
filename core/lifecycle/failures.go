package lifecycle

import (
	"hash/fnv"
	"strings"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// pause is how long to wait after a failure: from the first, doubling to the last.
type pause struct{ first, last time.Duration }

// nth is the pause after the n-th failure in a row, n from 1.
func (p pause) nth(n int) time.Duration {
	wait := p.first
	for i := 1; i < n && wait < p.last; i++ {
		wait *= 2
	}
	return min(wait, p.last)
}

// pauses by class. What concerns a whole account (credentials, quota, capacity, rate) has short ones: core/driver lets only one
// machine try at a time, and rarely. What else only a person can mend is tried rarely.
var pauses = map[instance.Class]pause{
	instance.OutcomeUnknown: {time.Second, 30 * time.Second},
	instance.Unavailable:    {time.Second, 10 * time.Second},
	instance.NotFound:       {2 * time.Second, time.Minute},
	instance.Credentials:    {10 * time.Second, 30 * time.Second},
	instance.Quota:          {5 * time.Second, 30 * time.Second},
	instance.Capacity:       {5 * time.Second, 30 * time.Second},
	instance.RateLimited:    {time.Second, 30 * time.Second},
	instance.Precondition:   {10 * time.Second, 2 * time.Minute},
	instance.AccountChanged: {time.Minute, 5 * time.Minute},
	instance.StaleEpoch:     {30 * time.Second, 5 * time.Minute},
	instance.Pending:        {time.Second, 5 * time.Second},
	instance.Unimplemented:  {time.Minute, 5 * time.Minute},
	instance.Internal:       {2 * time.Second, 2 * time.Minute},
	instance.SpecInvalid:    {30 * time.Second, 5 * time.Minute},
	instance.Conflict:       {30 * time.Second, 5 * time.Minute},
	instance.DataLoss:       {5 * time.Minute, 5 * time.Minute},
}

// after returns how long to wait after the n-th failure of a class in a row, n from 1. A driver's own wish can only make
// it longer. uid spreads machines that failed together.
func after(f *instance.Failure, n int, uid string) time.Duration {
	wait := pauses[f.Class].nth(n)
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid))
	wait -= wait / 5 * time.Duration(h.Sum32()%64) / 64
	return max(wait, f.RetryAfter)
}

// terminal says whether a create that failed so will never succeed.
func terminal(c instance.Class) bool {
	return c == instance.SpecInvalid || c == instance.Conflict
}

// unverifiable says whether a look that failed so will fail until a person mends what is wrong. It tells nothing of the VM.
func unverifiable(c instance.Class) bool {
	return c == instance.AccountChanged || c == instance.Credentials || c == instance.DataLoss || c == instance.SpecInvalid
}

// uncertain says whether a mutation that failed so may have taken effect, or may yet.
func uncertain(c instance.Class) bool {
	switch c {
	case instance.OutcomeUnknown, instance.Internal, instance.DataLoss, instance.Pending, instance.StaleEpoch, instance.NotFound:
		return true
	case instance.Unavailable, instance.SpecInvalid, instance.Conflict, instance.Credentials, instance.Quota, instance.Capacity,
		instance.RateLimited, instance.Precondition, instance.AccountChanged, instance.Unimplemented:
	}
	return false
}

// reasonOf is the condition's reason for a failure.
func reasonOf(f *instance.Failure) string {
	switch f.Class {
	case instance.OutcomeUnknown:
		return clusterv1alpha1.ReasonOutcomeUnknown
	case instance.Unavailable:
		return clusterv1alpha1.ReasonDriverUnavailable
	case instance.DataLoss:
		return clusterv1alpha1.ReasonDataLoss
	default:
		return f.Reason
	}
}

// specPath is where a driver's field paths begin.
const specPath = "spec.providerSpec.value.cloudProviderSpec"

// explain is the failure for people: the cloud's own words, and each wrong field by its whole path.
func explain(f *instance.Failure) string {
	if len(f.Fields) == 0 {
		return f.Message
	}
	lines := make([]string, 0, len(f.Fields))
	for _, field := range f.Fields {
		path := specPath
		if field.Path != "" && !strings.HasPrefix(field.Path, "[") {
			path += "."
		}
		lines = append(lines, path+field.Path+": "+field.Description)
	}
	return strings.Join(lines, "; ")
}
