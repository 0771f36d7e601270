package apiserver

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestVersionsAreCompared(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		newer bool
	}{
		{"10", "9", true}, {"9", "10", false}, {"9", "9", false}, {"", "9", false}, {"9", "", false}, {"x", "9", false},
	} {
		if got := IsNewer(c.a, c.b); got != c.newer {
			t.Errorf("%q is newer than %q: %t", c.a, c.b, got)
		}
	}
}

func TestOnlyARefusalHasChangedNothing(t *testing.T) {
	machines := schema.GroupResource{Group: "cluster.k8s.io", Resource: "machines"}
	for name, c := range map[string]struct {
		err     error
		refused bool
	}{
		"none":              {nil, false},
		"a conflict":        {apierrors.NewConflict(machines, "m", errors.New("changed")), true},
		"a wrapped refusal": {fmt.Errorf("create: %w", apierrors.NewForbidden(machines, "m", errors.New("no"))), true},
		"a server's error":  {apierrors.NewInternalError(errors.New("etcd")), false},
		"a lost connection": {errors.New("EOF"), false},
	} {
		if got := IsRefused(c.err); got != c.refused {
			t.Errorf("%s is a refusal: %t", name, got)
		}
	}
}
