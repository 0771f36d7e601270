package drain

import (
	"fmt"
	"slices"
	"strings"
)

// named is how many pods a message names; the others are counted.
const named = 3

// Progress is what a pass found.
type Progress struct {
	// Unreachable: no kubelet answers for the Node, so nothing is waited for that only a kubelet could do.
	Unreachable bool
	// Evicted are the pods whose eviction this pass brought about, as namespace/name.
	Evicted []string
	// Waiting are pods that are terminating and are waited for.
	Waiting []string
	// Blocked are pods that may not be evicted now.
	Blocked []Blocker
}

// Blocker is a pod that may not be evicted now, and why, in the API server's words: they name the PodDisruptionBudget.
type Blocker struct {
	Pod, Why string
}

// Done says whether no pod is left that has to be waited for.
func (p Progress) Done() bool {
	return len(p.Waiting) == 0 && len(p.Blocked) == 0 && (p.Unreachable || len(p.Evicted) == 0)
}

// BlockedBy names the blocked pods and what blocks them, in an order that stays; empty when there are none.
func (p Progress) BlockedBy() string {
	texts := make([]string, 0, len(p.Blocked))
	for _, b := range p.Blocked {
		texts = append(texts, fmt.Sprintf("pod %s: %s", b.Pod, b.Why))
	}
	return list(texts, "; ")
}

// Remaining names the pods that are still on the Node, in an order that stays.
func (p Progress) Remaining() string {
	texts := slices.Concat(p.Evicted, p.Waiting)
	for _, b := range p.Blocked {
		texts = append(texts, b.Pod)
	}
	return list(texts, ", ")
}

func list(texts []string, separator string) string {
	slices.Sort(texts)
	if rest := len(texts) - named; rest > 0 {
		return strings.Join(texts[:named], separator) + fmt.Sprintf("%sand %d more", separator, rest)
	}
	return strings.Join(texts, separator)
}
