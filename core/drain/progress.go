package drain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// named is how many pods a message names; the others are counted.
const named = 3

// Progress is what a pass found.
type Progress struct {
	// Evicted are the pods whose eviction this pass brought about, as namespace/name.
	Evicted []string
	// Waiting are pods that are terminating and are waited for.
	Waiting []string
	// Later are pods that are evicted once those with a lower order are gone, or once it is their
	// turn among those with volumes.
	Later []string
	// Next says what the next pod with volumes waits for, in stable words: pods that have to end,
	// or volumes that have to be detached. It is empty where none waits for that.
	Next string
	// Blocked are pods that their PodDisruptionBudgets keep from being evicted now.
	Blocked []Blocker
	// Refused are pods whose eviction the API server refused for another reason.
	Refused []Blocker
}

// Blocker is a pod that may not be evicted now, and why, in the API server's words: they name the
// PodDisruptionBudget.
type Blocker struct {
	Pod, Why string
}

// add adds what came of an eviction. A pod that was gone, or of which nobody knows, adds nothing.
func (p *Progress) add(pod *corev1.Pod, came outcome, why string) {
	switch came {
	case evicted:
		p.Evicted = append(p.Evicted, key(pod))
	case blocked:
		p.Blocked = append(p.Blocked, Blocker{Pod: key(pod), Why: why})
	case refused:
		p.Refused = append(p.Refused, Blocker{Pod: key(pod), Why: why})
	case gone:
	}
}

// Done says whether no pod is left that has to be waited for.
func (p Progress) Done() bool {
	return len(p.Evicted) == 0 && len(p.Waiting) == 0 && p.Terminating()
}

// Terminating says whether every pod that is left is terminating: only its kubelet is waited for.
func (p Progress) Terminating() bool {
	return len(p.Blocked) == 0 && len(p.Refused) == 0 && len(p.Later) == 0
}

// BlockedBy names the blocked pods and what blocks them, in an order that stays; empty when there
// are none.
func (p Progress) BlockedBy() string { return explain(p.Blocked) }

// RefusedBy names the pods that are refused and why, in an order that stays; empty when there are
// none.
func (p Progress) RefusedBy() string { return explain(p.Refused) }

// Remaining names the pods that are still on the Node, in an order that stays.
func (p Progress) Remaining() string {
	texts := slices.Concat(p.Evicted, p.Waiting, p.Later)
	for _, b := range slices.Concat(p.Blocked, p.Refused) {
		texts = append(texts, b.Pod)
	}
	return list(texts, ", ")
}

func explain(blockers []Blocker) string {
	texts := make([]string, 0, len(blockers))
	for _, b := range blockers {
		texts = append(texts, fmt.Sprintf("pod %s: %s", b.Pod, b.Why))
	}
	return list(texts, "; ")
}

func list(texts []string, separator string) string {
	slices.Sort(texts)
	if rest := len(texts) - named; rest > 0 {
		return strings.Join(texts[:named], separator) + fmt.Sprintf("%sand %d more", separator, rest)
	}
	return strings.Join(texts, separator)
}
