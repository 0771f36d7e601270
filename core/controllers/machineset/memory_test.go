package machineset

import "testing"

// What a cache shows is told by versions of Machines alone: a set's, or another kind's, says
// nothing of them.
func TestSET1_WhatTheCacheShowsIsToldByMachinesAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		listedVersion    string
		listedGeneration int64
		seen             string
		generation       int64
		want             bool
	}{
		"nobody has asked yet":              {seen: "1000000", generation: 1},
		"nor of this generation":            {listedVersion: "5", listedGeneration: 1, seen: "1000000", generation: 2},
		"a Machine that was written after":  {listedVersion: "5", listedGeneration: 2, seen: "6", generation: 2, want: true},
		"the very last that was before":     {listedVersion: "5", listedGeneration: 2, seen: "5", generation: 2, want: true},
		"a Machine that was written before": {listedVersion: "500", listedGeneration: 2, seen: "6", generation: 2},
		"no Machine was seen":               {listedVersion: "5", listedGeneration: 2, generation: 2},
	} {
		m := &memory{listedVersion: tc.listedVersion, listedGeneration: tc.listedGeneration}
		if got := m.shows(tc.seen, tc.generation); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
