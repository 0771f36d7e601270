package machine

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/coexistence"
)

// leaveAlone does nothing for a Machine that another system works on, but to show why: no driver is
// asked for it, no Secret read, no Node touched, no finalizer removed, also when it is deleted.
// What a call that was under way came to is kept by its driver's client, and taken over if the
// Machine is Millwright's again.
//
// Taking the VM over from the other system, by AdoptMachine, would begin here.
func (r *reconciler) leaveAlone(ctx context.Context, m *clusterv1alpha1.Machine, mem *memory, why string, err error) (ctrl.Result, error) {
	if err != nil {
		return ctrl.Result{}, err
	}
	if mem.driver != nil {
		mem.driver.Untrack(client.ObjectKeyFromObject(m), mem.uid)
	}
	contested := slices.Contains(m.Finalizers, clusterv1alpha1.MachineFinalizer) && !coexistence.IsLeftAlone(m)
	version := m.ResourceVersion
	result, err := coexistence.LeaveAlone(ctx, r.client, m, why)
	if err != nil || m.ResourceVersion == version {
		return result, err
	}
	mem.version = m.ResourceVersion
	if contested {
		// It was Millwright's before: two systems work on it now, or one was moved in without the
		// other being stopped.
		r.events.Eventf(m, nil, corev1.EventTypeWarning, clusterv1alpha1.ReasonManagedByAnother, "LeaveAlone", "%s", why)
	}
	return result, nil
}
