package main

import "testing"

func TestIsSpecial(t *testing.T) {
	for flags, want := range map[string]bool{
		"":                           false,
		"rR --no-print-directory":    false,
		"rR -- PART=test-qemu":       false,
		"rR -- AGAIN=1 PART=vet":     false,
		"rR -- RUN=TestOne PART=vet": true,
		" -- SHORT=":                 true,
	} {
		if got := isSpecial(flags); got != want {
			t.Errorf("%q: %t, want %t", flags, got, want)
		}
	}
}
