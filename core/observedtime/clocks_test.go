package observedtime

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/millwright-dev/millwright/core/driver"
)

// TestStopwatch: time counts between good readings, and begins anew after each break.
func TestStopwatch(t *testing.T) {
	const settle = 10 * time.Second
	type reading struct {
		after time.Duration
		good  bool
	}
	good, bad := reading{askInterval, true}, reading{askInterval, false}
	for name, c := range map[string]struct {
		readings []reading
		want     time.Duration
		runs     bool
	}{
		"nothing was read":                       {},
		"the first time is not enough":           {readings: []reading{good}},
		"nor is settling":                        {readings: []reading{good, good, good, good, good}},
		"after that it counts":                   {readings: []reading{good, good, good, good, good, good, good}, want: askInterval, runs: true},
		"what was bad at its end does not":       {readings: []reading{good, good, good, good, good, good, good, bad}, want: askInterval},
		"nor what comes after, until it settles": {readings: []reading{good, good, good, good, good, good, good, bad, good, good}, want: askInterval},
		"nor a gap": {
			readings: []reading{good, good, good, good, good, good, good, {time.Hour, true}, good}, want: askInterval,
		},
		"a slow reading is no gap": {
			readings: []reading{good, good, good, good, good, good, {3 * askInterval, true}}, want: 3 * askInterval, runs: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s stopwatch
			now := time.Now()
			for _, r := range c.readings {
				now = now.Add(r.after)
				s.read(now, r.good, settle)
			}
			if s.ran() != c.want || s.runs() != c.runs {
				t.Errorf("ran %s, runs %t; want %s, %t", s.ran(), s.runs(), c.want, c.runs)
			}
		})
	}
}

// TestSAFE3_ClocksStandStill: no clock runs while the API server is away, none of a driver's while
// that one is.
func TestSAFE3_ClocksStandStill(t *testing.T) {
	drivers, err := driver.New(driver.Config{ClusterUID: "c", Log: logr.Discard(), Registry: prometheus.NewRegistry()},
		[]driver.Target{{Name: "test", Address: "unix:///nowhere"}})
	if err != nil {
		t.Fatal(err)
	}
	paused, err := newPaused(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakeClock(time.Now())
	var away error
	reporting := true
	c := &Clocks{
		Options: Options{Clock: clock, Settle: time.Second, Drivers: drivers}, paused: paused, log: logr.Discard(), cloud: map[string]*stopwatch{},
		ask:        []func(context.Context) error{func(context.Context) error { return away }},
		heartbeats: &heartbeats{read: func(context.Context, time.Time) bool { return reporting }},
	}
	look := func(times int) {
		for range times {
			c.heartbeats.want(clock.Now())
			c.look(t.Context())
			clock.Step(askInterval)
		}
	}
	d, err := drivers.For("test")
	if err != nil {
		t.Fatal(err)
	}
	look(10)
	first := c.Reading(d)
	if first.Cluster == 0 || first.Nodes == 0 || first.Cloud != 0 || first.Runs || first.Away == "" {
		t.Errorf("with a driver that is away the clocks show %+v", first)
	}
	away = errors.New("refused")
	look(10)
	if second := c.Reading(d); second.Cluster != first.Cluster || second.Nodes != first.Nodes || second.Away != "" {
		t.Errorf("while the API server is away the clocks show %+v, before %+v", second, first)
	}
	away = nil
	look(10)
	if third := c.Reading(d); third.Cluster <= first.Cluster {
		t.Errorf("after it came back the clocks show %+v, before %+v", third, first)
	}
	reporting = false
	last := c.Reading(d)
	look(10)
	if silent := c.Reading(d); silent.Cluster <= last.Cluster || silent.Nodes-last.Nodes > leaseInterval || last.Nodes <= first.Nodes {
		t.Errorf("while no Node reports the clocks show %+v, before %+v", silent, last)
	}
	if unknown := c.Reading(nil); unknown.Runs || unknown.Cloud != 0 {
		t.Errorf("without a driver the clocks show %+v", unknown)
	}
}
