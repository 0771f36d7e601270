package conditions

import (
	"context"
	"fmt"
	"maps"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/requeue"
)

// Of returns the conditions of a MachineDeployment, MachineSet or Machine, to read and to change;
// an empty list for other kinds.
func Of(o client.Object) *[]metav1.Condition {
	switch o := o.(type) {
	case *clusterv1alpha1.MachineDeployment:
		return &o.Status.Conditions
	case *clusterv1alpha1.MachineSet:
		return &o.Status.Conditions
	case *clusterv1alpha1.Machine:
		return &o.Status.Conditions
	}
	return &[]metav1.Condition{}
}

// Write sets one condition and nothing else of the status, and writes nothing if it is set already.
// It fills in the observed generation. The object becomes what was written.
func Write(ctx context.Context, c client.Client, o client.Object, condition metav1.Condition) (ctrl.Result, error) {
	before := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	condition.ObservedGeneration = o.GetGeneration()
	if !apimeta.SetStatusCondition(Of(o), condition) {
		return ctrl.Result{}, nil
	}
	// A merge patch replaces the whole list: the lock keeps it from undoing another write.
	err := c.Status().Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: requeue.Soon}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("write the condition %s: %w", condition.Type, err)
	}
	return ctrl.Result{}, nil
}

// Paused is the condition of an object that is paused by annotation.
func Paused(o metav1.Object) metav1.Condition {
	return metav1.Condition{
		Type: clusterv1alpha1.ConditionPaused, Status: metav1.ConditionTrue, ObservedGeneration: o.GetGeneration(),
		Reason:  clusterv1alpha1.ReasonPausedByAnnotation,
		Message: "The annotation " + clusterv1alpha1.PausedAnnotation + " is set: nothing is done until it is gone",
	}
}

// HaveSameReasons says whether two lists have the same conditions with the same status and reason.
// Messages and times may differ.
func HaveSameReasons(a, b []metav1.Condition) bool {
	type verdict struct {
		kind, reason string
		status       metav1.ConditionStatus
	}
	verdicts := func(conditions []metav1.Condition) map[verdict]bool {
		set := map[verdict]bool{}
		for _, c := range conditions {
			set[verdict{c.Type, c.Reason, c.Status}] = true
		}
		return set
	}
	return len(a) == len(b) && maps.Equal(verdicts(a), verdicts(b))
}

// maxMessage is how many bytes of a condition's message the API server accepts.
const maxMessage = 32768

// TruncateMessage returns as much of the message as fits into a condition, cut between two
// characters.
func TruncateMessage(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	end := maxMessage
	for end > maxMessage-utf8.UTFMax && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end]
}
