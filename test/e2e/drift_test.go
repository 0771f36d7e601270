package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// A GitOps tool applies the same manifest again and again by server-side apply, while a rollout
// goes on. It meets no conflict, and finds nothing that is not as it has declared it.
func TestOPS6_AGitOpsOwnerMeetsNoConflictAndNoDrift(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	manifest := func(kubelet string) []byte {
		return []byte(autoscaled(deployment("declared", 3, map[string]string{"kubelet": kubelet}), ""))
	}
	apply := func(manifest []byte) error {
		if out, err := u.try(manifest, "apply", "--server-side", "--field-manager=gitops", "-f", "-"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	if err := apply(manifest("1.34.1")); err != nil {
		t.Fatal(err)
	}
	u.awaitRunning(3)
	wanted := manifest("1.34.2")
	if err := apply(wanted); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	applied := 0
	var applying sync.WaitGroup
	applying.Go(func() {
		wait.UntilWithContext(ctx, func(context.Context) {
			if err := apply(wanted); err != nil {
				t.Errorf("applied for the %d. time: %v", applied, err)
			}
			applied++
		}, time.Second)
	})
	u.rolledOut("declared")
	u.awaitRunning(3)
	stop()
	applying.Wait()
	t.Logf("it was applied %d times during the rollout", applied)
	if out, err := u.try(wanted, "diff", "--server-side", "--field-manager=gitops", "-f", "-"); err != nil {
		t.Errorf("what is declared differs from what is there: %v: %s", err, out)
	}
	md := &clusterv1alpha1.MachineDeployment{}
	if err := u.client.Get(t.Context(), client.ObjectKey{Namespace: u.namespace, Name: "declared"}, md); err != nil {
		t.Fatal(err)
	}
	if got := u.kubelets(); got != "1.34.2 1.34.2 1.34.2" {
		t.Errorf("the kubelets are %s", got)
	}
	// What core has written into the object is none of the spec's fields.
	for _, entry := range md.ManagedFields {
		if entry.Manager == "gitops" && entry.Operation == metav1.ManagedFieldsOperationApply || entry.Subresource != "" {
			continue
		}
		if strings.Contains(entry.FieldsV1.GetRawString(), `"f:spec"`) {
			t.Errorf("%s owns fields of the spec: %s", entry.Manager, entry.FieldsV1.GetRawString())
		}
	}
}
