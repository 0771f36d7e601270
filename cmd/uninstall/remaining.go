package uninstall

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// maxReasons is how many Machines are named at once.
const maxReasons = 10

// remaining is what is left of Millwright's objects.
type remaining struct {
	counts map[string]int
	// parts are the Machines.
	parts []*clusterv1alpha1.Machine
}

func (r *remaining) add(kind string, objects []client.Object) {
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	r.counts[kind] = len(objects)
	for _, o := range objects {
		if m, ok := o.(*clusterv1alpha1.Machine); ok {
			r.parts = append(r.parts, m)
		}
	}
}

// machines counts what machines stand behind.
func (r *remaining) machines() int {
	n := 0
	for _, kind := range kinds[:makers] {
		n += r.counts[kind]
	}
	return n
}

// none says whether nothing at all is left.
func (r *remaining) none() bool {
	for _, n := range r.counts {
		if n > 0 {
			return false
		}
	}
	return true
}

// summary says how much is left, in one line.
func (r *remaining) summary() string {
	if r.none() {
		return "0 Machines left."
	}
	phases := map[string]int{}
	for _, m := range r.parts {
		phases[string(m.Status.Phase)]++
	}
	text := counted(len(r.parts), clusterv1alpha1.MachineKind) + " left"
	var details []string
	for _, phase := range slices.Sorted(maps.Keys(phases)) {
		details = append(details, fmt.Sprintf("%d %s", phases[phase], phase))
	}
	for _, kind := range kinds {
		if n := r.counts[kind]; n > 0 && kind != clusterv1alpha1.MachineKind {
			details = append(details, counted(n, kind))
		}
	}
	return text + " (" + strings.Join(details, ", ") + ")"
}

// reasons name some of the Machines with what keeps each.
func (r *remaining) reasons() []string {
	var lines []string
	for _, m := range r.parts {
		if len(lines) == maxReasons {
			return append(lines, fmt.Sprintf("and %d more", len(r.parts)-maxReasons))
		}
		why := "no condition tells why"
		for _, typ := range []string{clusterv1alpha1.ConditionReady, clusterv1alpha1.ConditionPaused} {
			if c := meta.FindStatusCondition(m.Status.Conditions, typ); c != nil {
				why = c.Reason + ": " + c.Message
			}
		}
		lines = append(lines, fmt.Sprintf("%s/%s: %s", m.Namespace, m.Name, why))
	}
	return lines
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
