package machine

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// holderOfUID names, for people, the Machine that has m's machineUID and had it first; empty where
// m may have it.
func holderOfUID(ctx context.Context, machines client.Reader, m *clusterv1alpha1.Machine) (string, error) {
	uid := ptr.Deref(m.Spec.MachineUID, "")
	if uid == "" {
		return "", nil
	}
	var same clusterv1alpha1.MachineList
	if err := machines.List(ctx, &same, client.MatchingFields{machineUIDIndex: uid}, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list the Machines of a machineUID: %w", err)
	}
	for i := range same.Items {
		if other := &same.Items[i]; other.UID != m.UID && hadUIDBefore(other, m) {
			return keyOf(other), nil
		}
	}
	return "", nil
}

// hadUIDBefore says whether the other of two Machines with one machineUID keeps it. A Machine that
// core has begun with keeps it. One that the driver does not confirm gives way. Else the older one
// keeps it.
func hadUIDBefore(other, m *clusterv1alpha1.Machine) bool {
	if hasBegun(m) {
		return false
	}
	if hasBegun(other) {
		return true
	}
	if isDenied(other) != isDenied(m) {
		return isDenied(m)
	}
	if !other.CreationTimestamp.Equal(&m.CreationTimestamp) {
		return other.CreationTimestamp.Before(&m.CreationTimestamp)
	}
	return other.UID < m.UID
}

// hasBegun says whether core has asked, or seen, anything of the Machine's VM.
func hasBegun(m *clusterv1alpha1.Machine) bool {
	return m.Status.LastOperation != nil || m.Status.ProviderID != ""
}

// isDenied says whether the driver knows no VM of the Machine, which came with a providerID.
func isDenied(m *clusterv1alpha1.Machine) bool {
	c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionInstanceReady)
	return c != nil && c.Reason == clusterv1alpha1.ReasonNotAdopted && c.Status == metav1.ConditionFalse
}
