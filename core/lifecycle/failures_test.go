package lifecycle

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/core/instance"
)

// TestAfter: pauses grow, stay within their bounds, and leave the last word to a driver that asks for more.
func TestAfter(t *testing.T) {
	for _, class := range classes[1:] {
		p, known := pauses[class]
		if !known {
			t.Errorf("%s has no pause", class)
		}
		before := time.Duration(0)
		for n := 1; n < 40; n++ {
			wait := after(&instance.Failure{Class: class}, n, "uid")
			if wait < before || wait < p.first*8/10 || wait > p.last {
				t.Errorf("%s: pause %d is %s after %s", class, n, wait, before)
			}
			before = wait
		}
		if wait := after(&instance.Failure{Class: class, RetryAfter: time.Hour}, 1, "uid"); wait != time.Hour {
			t.Errorf("%s: waits %s where the driver asks for an hour", class, wait)
		}
	}
	quota := &instance.Failure{Class: instance.Quota}
	if after(quota, 1, "a") == after(quota, 1, "b") {
		t.Error("machines that failed together come back together")
	}
}

// TestPauses pins them: operators read them in docs/operating.md's figures of calls.
func TestPauses(t *testing.T) {
	want := map[instance.Class]string{
		instance.OutcomeUnknown: "1s 2s 30s", instance.Unavailable: "1s 2s 10s", instance.NotFound: "2s 4s 1m0s",
		instance.Credentials: "10s 20s 30s", instance.Quota: "5s 10s 30s", instance.Capacity: "5s 10s 30s",
		instance.RateLimited: "1s 2s 30s", instance.Precondition: "10s 20s 2m0s", instance.AccountChanged: "1m0s 2m0s 5m0s",
		instance.StaleEpoch: "30s 1m0s 5m0s", instance.Pending: "1s 2s 5s", instance.Unimplemented: "1m0s 2m0s 5m0s",
		instance.Internal: "2s 4s 2m0s", instance.SpecInvalid: "30s 1m0s 5m0s", instance.Conflict: "30s 1m0s 5m0s",
		instance.DataLoss: "5m0s 5m0s 5m0s",
	}
	for class, p := range pauses {
		if got := fmt.Sprint(p.nth(1), p.nth(2), p.nth(100)); got != want[class] {
			t.Errorf("%s pauses for %s, want %s", class, got, want[class])
		}
	}
}

// TestPausesSpread: machines that failed together come back over a fifth of the pause.
func TestPausesSpread(t *testing.T) {
	least, most := time.Hour, time.Duration(0)
	for n := range 1000 {
		wait := after(&instance.Failure{Class: instance.Quota}, 100, strconv.Itoa(n))
		least, most = min(least, wait), max(most, wait)
	}
	if least < 24*time.Second || least > 24200*time.Millisecond || most != 30*time.Second {
		t.Errorf("pauses of 30s last from %s to %s", least, most)
	}
}

// TestExplain: wrong fields are named by their whole path.
func TestExplain(t *testing.T) {
	for name, c := range map[string]struct {
		fields []instance.Field
		want   string
	}{
		"no field": {nil, "words"},
		"fields": {
			[]instance.Field{{Path: "size", Description: "is wrong"}, {Path: "disks[0].type", Description: "is missing"}},
			"spec.providerSpec.value.cloudProviderSpec.size: is wrong; spec.providerSpec.value.cloudProviderSpec.disks[0].type: is missing",
		},
		"the whole": {[]instance.Field{{Description: "is no object"}}, "spec.providerSpec.value.cloudProviderSpec: is no object"},
		"an element": {
			[]instance.Field{{Path: `["a.b"]`, Description: "is unknown"}},
			`spec.providerSpec.value.cloudProviderSpec["a.b"]: is unknown`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := explain(&instance.Failure{Message: "words", Fields: c.fields}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
