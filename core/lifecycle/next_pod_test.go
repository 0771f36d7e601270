package lifecycle

import (
	"testing"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// TestLIFE10_WhatTheNextPodWaitsForIsShown: the condition Drained says what keeps the next pod with
// volumes, unless that passes soon.
func TestLIFE10_WhatTheNextPodWaitsForIsShown(t *testing.T) {
	const next = "volumes to be detached: pv-a"
	found := func(d Drain) func(*State) {
		d.Next, d.Remaining = next, "a/b"
		return all(running, deleting, func(s *State) { s.Drain = &d })
	}
	waits := func(given func(*State), reason, message string) wantStep {
		return wantStep{
			given: given, requeue: time.Second, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Drained False " + reason, message: message,
		}
	}
	quiet := waits(all(running, deleting, func(s *State) { s.Drain = &Drain{Remaining: "a/b"} }, told, func(s *State) { s.Drain.Next = next }),
		"Draining", "evicted from Node node.")
	quiet.silent = true
	lasting := waits(all(quiet.given, waited(drainDebounce)), "Draining", next)
	lasting.requeue = 2 * time.Second
	blocked := waits(found(Drain{Blocked: "pod a/b: budget", Refused: "pod a/c: no"}), "BlockedByPodDisruptionBudget",
		"pod a/b: budget; pod a/c: no; pods with volumes go one at a time, and the next one waits for "+next)
	blocked.requeue = blockedBackoff.First
	checkSteps(t, map[string]wantStep{
		"at first it is shown with all else": waits(found(Drain{}), "Draining",
			"Waiting for the pods that were evicted from Node node; pods with volumes go one at a time, and the next one waits for "+next+"."),
		"later when it lasts": lasting,
		"but not before":      quiet,
		"beside a budget":     blocked,
		"and a refusal": waits(found(Drain{Refused: "pod a/c: no"}), "EvictionRefused",
			"pod a/c: no; pods with volumes go one at a time, and the next one waits for "+next),
	})
}
