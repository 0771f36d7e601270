package machinedeployment

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// readLeftovers reads the sets of an earlier deployment of this name, but for those that another
// system works on.
//
// Kubernetes' garbage collector deletes the sets of an earlier deployment in most cases. If the
// deployment was deleted and made again while the collector's watch was interrupted, it takes the
// new one for the old. The sets and their VMs would then stay for ever. The cause is in
// https://github.com/kubernetes/kubernetes/pull/133565.
func (r *reconciler) readLeftovers(ctx context.Context, md *clusterv1alpha1.MachineDeployment) ([]*clusterv1alpha1.MachineSet, error) {
	namesakes, err := r.listSets(ctx, md, ownerNameIndex, md.Name)
	if err != nil {
		return nil, err
	}
	var leftovers []*clusterv1alpha1.MachineSet
	for i := range namesakes {
		set := &namesakes[i]
		if metav1.IsControlledBy(set, md) || !set.DeletionTimestamp.IsZero() {
			continue
		}
		why, err := r.foreigners.WhySet(ctx, set)
		if err != nil {
			return nil, err
		}
		if why == "" {
			leftovers = append(leftovers, set)
		}
	}
	return leftovers, nil
}

// deleteLeftovers deletes sets of an earlier deployment of this name. It does nothing if the cache
// is behind: it may show an earlier deployment than the set's, or the set may have another owner by
// now. The API server has the latest deployment, and whoever owned a set before is gone then.
func (r *reconciler) deleteLeftovers(
	ctx context.Context, md *clusterv1alpha1.MachineDeployment, leftovers []*clusterv1alpha1.MachineSet,
) error {
	for _, set := range leftovers {
		now := &clusterv1alpha1.MachineDeployment{}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(md), now); err != nil {
			return fmt.Errorf("look up the MachineDeployment: %w", err)
		}
		if now.UID != md.UID {
			return nil
		}
		switch err := r.deleteSet(ctx, set); {
		case apierrors.IsConflict(err):
		case err != nil:
			return fmt.Errorf("delete MachineSet %s of an earlier deployment: %w", set.Name, err)
		default:
			log.FromContext(ctx).Info("deleted the MachineSet of an earlier MachineDeployment of this name", "machineSet", set.Name)
		}
	}
	return nil
}
