package machinedeployment

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/requeue"
)

// namesakeIndex finds sets by the name of the MachineDeployment that controls them.
const namesakeIndex = "machinedeployment.name-of-owner"

func ownerName(set client.Object) []string {
	if owner := ownership.ControllerOf(set, clusterv1alpha1.MachineDeploymentKind); owner != nil {
		return []string{owner.Name}
	}
	return nil
}

// dropLeftovers deletes the sets of an earlier deployment of the same name. So does Kubernetes'
// garbage collector, unless the deployment was deleted and made again while its watch was
// interrupted: then it takes the new one for the old, and the sets and their VMs would stay for
// ever (https://github.com/kubernetes/kubernetes/pull/133565 has the cause).
func (r *reconciler) dropLeftovers(ctx context.Context, md *clusterv1alpha1.MachineDeployment) error {
	sets := &clusterv1alpha1.MachineSetList{}
	if err := r.client.List(ctx, sets, client.InNamespace(md.Namespace), client.MatchingFields{namesakeIndex: md.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list MachineSets of earlier deployments: %w", err)
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		if owner := ownership.ControllerOf(set, clusterv1alpha1.MachineDeploymentKind); owner.UID == md.UID || !set.DeletionTimestamp.IsZero() {
			continue
		}
		if why, err := r.foreigners.WhySet(ctx, set); err != nil || why != "" {
			if err != nil {
				return err
			}
			continue
		}
		// The cache may show an earlier deployment than the set's. The API server has the latest,
		// and whoever owned a set before is gone then.
		now := &clusterv1alpha1.MachineDeployment{}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(md), now); err != nil {
			return fmt.Errorf("look up the MachineDeployment: %w", err)
		}
		if now.UID != md.UID {
			return requeue.ErrStale
		}
		// Nor may the set itself have changed hands.
		err := r.client.Delete(ctx, set.DeepCopy(), client.Preconditions{UID: &set.UID, ResourceVersion: &set.ResourceVersion})
		if apierrors.IsConflict(err) {
			return requeue.ErrStale
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete MachineSet %s of an earlier deployment: %w", set.Name, err)
		}
		log.FromContext(ctx).Info("deleted the MachineSet of an earlier MachineDeployment of this name", "machineSet", set.Name)
	}
	return nil
}
