package lifecycle

import (
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
