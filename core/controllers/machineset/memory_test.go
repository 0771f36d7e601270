package machineset

import "testing"

// What a cache shows is told by versions of Machines alone: a set's, or another kind's, says
// nothing of them.
func TestSET1_WhatTheCacheShowsIsToldByMachinesAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		floor      string
		floorOf    int64
		seen       string
		generation int64
		want       bool
	}{
		"nobody has asked yet":              {seen: "1000000", generation: 1},
		"nor of this generation":            {floor: "5", floorOf: 1, seen: "1000000", generation: 2},
		"a Machine that was written after":  {floor: "5", floorOf: 2, seen: "6", generation: 2, want: true},
		"the very last that was before":     {floor: "5", floorOf: 2, seen: "5", generation: 2, want: true},
		"a Machine that was written before": {floor: "500", floorOf: 2, seen: "6", generation: 2},
		"no Machine was seen":               {floor: "5", floorOf: 2, generation: 2},
	} {
		m := &memory{floor: tc.floor, floorOf: tc.floorOf}
		if got := m.shows(tc.seen, tc.generation); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
