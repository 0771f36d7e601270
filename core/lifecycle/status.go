package lifecycle

import (
	"bytes"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// Status is a Machine's. Slices and what it points to are shared between statuses: nobody here
// changes one in place.
type Status clusterv1alpha1.MachineStatus

// condition is a condition but for its time and generation, which Status.set knows.
func condition(typ string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: typ, Status: status, Reason: reason, Message: message}
}

// Condition returns the condition of a type; the zero value when there is none.
func (s Status) Condition(typ string) metav1.Condition {
	return ptr.Deref(apimeta.FindStatusCondition(s.Conditions, typ), metav1.Condition{})
}

// Equal says whether a and b tell a reader the same. Times and generations may differ. What the
// driver confirmed of the providerID is told along with other news.
func (s Status) Equal(b Status) bool {
	return s.Phase == b.Phase && s.nodeName() == b.nodeName() && s.nodeUID() == b.nodeUID() &&
		slices.EqualFunc(s.Conditions, b.Conditions, saysSame) && slices.Equal(s.Addresses, b.Addresses) &&
		bytes.Equal(s.LastKnownState, b.LastKnownState) && sameNodeInfo(s.NodeInfo, b.NodeInfo) &&
		undated(s.LastOperation) == undated(b.LastOperation) &&
		ptr.Equal(s.FailureReason, b.FailureReason) && ptr.Equal(s.FailureMessage, b.FailureMessage)
}

func saysSame(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// sameNodeInfo says whether two statuses tell the same of what runs on the Node. That one tells
// nothing of it is no difference: it comes along with other news.
func sameNodeInfo(a, b *clusterv1alpha1.NodeInfo) bool {
	return a == nil || b == nil || *a == *b
}

// undated is an operation without its time; the zero value for none.
func undated(o *clusterv1alpha1.LastOperation) clusterv1alpha1.LastOperation {
	all := ptr.Deref(o, clusterv1alpha1.LastOperation{})
	all.LastUpdateTime = metav1.Time{}
	return all
}

// nodeName is nodeRef's; empty while there is none.
func (s Status) nodeName() string {
	return ptr.Deref(s.NodeRef, corev1.ObjectReference{}).Name
}

// nodeUID is nodeRef's. The kubelet's certificates are renewed only for the Node of that uid.
func (s Status) nodeUID() types.UID {
	return ptr.Deref(s.NodeRef, corev1.ObjectReference{}).UID
}

// hasProviderID says whether id was written down as the VM's.
func (s Status) hasProviderID(id string) bool {
	return s.ProviderID != "" && (id == s.ProviderID || slices.Contains(s.ProviderIDAliases, id))
}

// set returns s with a condition set as of a state, unless c is the zero value. s itself stays as
// it is.
func (s Status) set(c metav1.Condition, at State) Status {
	if c.Type == "" {
		return s
	}
	c.ObservedGeneration, c.LastTransitionTime = at.Machine.Generation, metav1.NewTime(at.Now)
	s.Conditions = slices.Clone(s.Conditions)
	apimeta.SetStatusCondition(&s.Conditions, c)
	return s
}

// without returns s without a condition. s itself stays as it is.
func (s Status) without(typ string) Status {
	s.Conditions = slices.Clone(s.Conditions)
	apimeta.RemoveStatusCondition(&s.Conditions, typ)
	return s
}

// words joins what core says with the cloud's own words.
func words(ours string, vm *instance.Instance) string {
	switch {
	case vm.Message != "":
		return ours + ": " + vm.Message
	case vm.Reason != "":
		return ours + ": " + vm.Reason
	}
	return ours + "."
}

// reasonOf is the condition's reason for a failure.
func reasonOf(f *instance.Failure) string {
	switch f.Class {
	case instance.OutcomeUnknown:
		return clusterv1alpha1.ReasonOutcomeUnknown
	case instance.Unavailable:
		return clusterv1alpha1.ReasonDriverUnavailable
	case instance.DataLoss:
		return clusterv1alpha1.ReasonDataLoss
	default:
		return f.Reason
	}
}

// specPath is where a driver's field paths begin.
const specPath = "spec.providerSpec.value.cloudProviderSpec"

// explain is the failure for people: the cloud's own words, and each wrong field by its whole path.
func explain(f *instance.Failure) string {
	if len(f.Fields) == 0 {
		return f.Message
	}
	lines := make([]string, 0, len(f.Fields))
	for _, field := range f.Fields {
		path := specPath
		if field.Path != "" && !strings.HasPrefix(field.Path, "[") {
			path += "."
		}
		lines = append(lines, path+field.Path+": "+field.Description)
	}
	return strings.Join(lines, "; ")
}
