package fleet

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/scale"
)

// ErrUndecided says that a Machine has to stay a moment longer.
var ErrUndecided = errors.New("the MachineSet has not noted yet that the Machine was created")

// MayGo says whether the Machine's last finalizer may go. While its set has not written down that the Machine's name is
// used up, a set's controller that has lost its memory would create the name once more if it did not find the Machine:
// then it is ErrUndecided, for as long as it takes to write the set's status. Machines without a set may always go, and
// those of a set that is gone or going.
func MayGo(ctx context.Context, reader client.Reader, m *clusterv1alpha1.Machine) error {
	owner := ControllerOf(m, clusterv1alpha1.MachineSetKind)
	if owner == nil {
		return nil
	}
	set := &clusterv1alpha1.MachineSet{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: owner.Name}, set)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up the Machine's set: %w", err)
	}
	if set.UID != owner.UID || !set.DeletionTimestamp.IsZero() {
		return nil
	}
	if !scale.Decided(set.Name, string(set.UID), m.Name, set.Status.NextIndex) {
		return ErrUndecided
	}
	return nil
}
