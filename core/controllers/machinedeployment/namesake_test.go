package machinedeployment_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

// No garbage collector works here, as after an interrupted watch: a deployment that is made again
// has nobody else to clear away after the one before.
func TestADeploymentMadeAgainDropsTheSetsBefore(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 2)
	isComplete(t, c, md, 2)
	before := sets(t, c)
	if len(before) != 1 {
		t.Fatalf("sets: %v", tellSets(t, c))
	}
	if err := c.Delete(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(md), md); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Sprintf("the deployment is there: %v", err)
		}
		return ""
	})
	again := newDeployment(t, c, 3)
	isComplete(t, c, again, 3)
	c.Eventually(t, func() string {
		owners := map[types.UID]bool{}
		for _, s := range sets(t, c) {
			owners[s.OwnerReferences[0].UID] = true
			if s.UID == before[0].UID || s.Name == before[0].Name {
				return "set " + s.Name + " is there still, or again"
			}
		}
		if len(owners) != 1 || !owners[again.UID] {
			return fmt.Sprintf("the sets belong to %v, want %s", owners, again.UID)
		}
		return ""
	})
}
