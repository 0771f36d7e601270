package ownership

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/scale"
)

// ErrNameNotRecorded says that a Machine has to stay a moment longer.
var ErrNameNotRecorded = errors.New("the MachineSet has not recorded yet that the Machine was created")

// CheckRemoval says whether the Machine's last finalizer may be removed: ErrNameNotRecorded until
// the set's status has recorded that the Machine's name is used up. A set's controller that
// restarted before that would create the name once more if it did not find the Machine. Machines
// without a set may always go, and those of a set that is gone or being deleted.
func CheckRemoval(ctx context.Context, reader client.Reader, m *clusterv1alpha1.Machine) error {
	set, err := SetOf(ctx, reader, m)
	if err != nil || set == nil || !set.DeletionTimestamp.IsZero() {
		return err
	}
	if !scale.IsDecided(set.Name, string(set.UID), m.Name, set.Status.NextIndex) {
		return ErrNameNotRecorded
	}
	return nil
}
