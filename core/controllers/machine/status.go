package machine

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/conditions"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/lifecycle"
)

// owned are the types of conditions that this controller owns.
var owned = []string{
	clusterv1alpha1.ConditionReady, clusterv1alpha1.ConditionBootstrapReady, clusterv1alpha1.ConditionInstanceReady,
	clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ConditionDrained, clusterv1alpha1.ConditionPaused,
}

// readStatus is the status in lifecycle's terms.
func readStatus(s *clusterv1alpha1.MachineStatus) lifecycle.Status {
	read := lifecycle.Status{
		Phase: s.Phase, ProviderID: s.ProviderID, ProviderIDAliases: s.ProviderIDAliases, LastKnownState: s.LastKnownState,
	}
	for _, c := range s.Conditions {
		if slices.Contains(owned, c.Type) {
			read.Conditions = append(read.Conditions, lifecycle.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	slices.SortFunc(read.Conditions, func(a, b lifecycle.Condition) int { return cmp.Compare(a.Type, b.Type) })
	if s.NodeRef != nil {
		read.NodeName = s.NodeRef.Name
	}
	for _, a := range s.Addresses {
		read.Addresses = append(read.Addresses, instance.Address{Type: string(a.Type), Address: a.Address})
	}
	if o := s.LastOperation; o != nil {
		read.LastOperation = &lifecycle.Operation{Type: o.Type, State: o.State, Description: o.Description, At: o.LastUpdateTime.Time}
	}
	if s.FailureReason != nil || s.FailureMessage != nil {
		read.Failure = &lifecycle.Failure{Reason: deref(s.FailureReason), Message: deref(s.FailureMessage)}
	}
	return read
}

// writeStatus puts lifecycle's status into the Machine's. Conditions of other owners stay.
func writeStatus(m *clusterv1alpha1.Machine, s lifecycle.Status, node *corev1.Node, now metav1.Time) {
	to := &m.Status
	to.ProviderID, to.ProviderIDAliases = s.ProviderID, s.ProviderIDAliases
	to.Phase, to.LastKnownState, to.ObservedGeneration = s.Phase, s.LastKnownState, m.Generation
	for _, typ := range owned {
		if s.Condition(typ).Type == "" {
			apimeta.RemoveStatusCondition(&to.Conditions, typ)
		}
	}
	for _, c := range s.Conditions {
		apimeta.SetStatusCondition(&to.Conditions, metav1.Condition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: conditions.TruncateMessage(c.Message),
			ObservedGeneration: m.Generation, LastTransitionTime: now,
		})
	}
	to.NodeRef = nodeRef(s.NodeName, node)
	to.Addresses = nil
	for _, a := range s.Addresses {
		to.Addresses = append(to.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(a.Type), Address: a.Address})
	}
	to.LastOperation = nil
	if o := s.LastOperation; o != nil {
		to.LastOperation = &clusterv1alpha1.LastOperation{
			Type: o.Type, State: o.State, Description: o.Description, LastUpdateTime: metav1.NewTime(o.At),
		}
	}
	to.ErrorReason, to.ErrorMessage, to.FailureReason, to.FailureMessage = nil, nil, nil, nil
	if f := s.Failure; f != nil {
		to.ErrorReason, to.ErrorMessage = &f.Reason, &f.Message
		to.FailureReason, to.FailureMessage = &f.Reason, &f.Message
	}
}

// nodeRef is nil without a Node: an empty reference would read as one.
func nodeRef(name string, node *corev1.Node) *corev1.ObjectReference {
	if name == "" {
		return nil
	}
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name}
	if node != nil && node.Name == name {
		ref.UID = node.UID
	}
	return ref
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
