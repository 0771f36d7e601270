package main

import (
	"errors"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"google.golang.org/grpc/mem"
)

func TestABufferIsNotMuchLargerThanItsMessage(t *testing.T) {
	if err := useSmallerBuffers(); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{33 << 10, 100 << 10, 500 << 10} {
		if buffer := mem.DefaultBufferPool().Get(size); cap(*buffer) > 2*size {
			t.Errorf("a message of %d bytes has a buffer of %d", size, cap(*buffer))
		}
	}
}

func TestMemoryIsLimitedByTheCgroup(t *testing.T) {
	failed := func() (uint64, error) { return 0, errors.New("no such file") }
	for name, tc := range map[string]struct {
		environment string
		cgroup      memlimit.Provider
		want        int64
	}{
		"90 % of the cgroup's":       {cgroup: memlimit.Limit(1000 << 20), want: 900 << 20},
		"the operator's limit wins":  {environment: "100MiB", cgroup: memlimit.Limit(1000 << 20), want: math.MaxInt64},
		"a cgroup without a limit":   {cgroup: func() (uint64, error) { return 0, memlimit.ErrNoLimit }, want: math.MaxInt64},
		"a cgroup that is not there": {cgroup: failed, want: math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			before := debug.SetMemoryLimit(math.MaxInt64)
			defer debug.SetMemoryLimit(before)
			t.Setenv("GOMEMLIMIT", tc.environment)
			if tc.environment == "" {
				if err := os.Unsetenv("GOMEMLIMIT"); err != nil {
					t.Fatal(err)
				}
			}
			limitMemory(logr.Discard(), tc.cgroup)
			if got := debug.SetMemoryLimit(-1); got != tc.want {
				t.Errorf("the limit is %d, want %d", got, tc.want)
			}
		})
	}
}
