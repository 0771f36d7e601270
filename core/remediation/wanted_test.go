package remediation

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestOnlyTheLastWordOnANamespaceCounts(t *testing.T) {
	w := New()
	if w.Has("ns", "a") {
		t.Error("a new one wants Machines replaced")
	}
	w.Set("ns", map[types.UID]bool{"a": true})
	w.Set("other", map[types.UID]bool{"b": true})
	if !w.Has("ns", "a") || w.Has("ns", "b") || !w.Has("other", "b") {
		t.Error("namespaces are mixed up")
	}
	w.Set("ns", map[types.UID]bool{"c": true})
	if w.Has("ns", "a") || !w.Has("ns", "c") {
		t.Error("what was wanted before still is")
	}
	w.Set("ns", nil)
	if w.Has("ns", "c") || len(w.byNamespace) != 1 {
		t.Error("a namespace without any is remembered")
	}
}
