package fleet

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Paused says whether somebody asked, by annotation, for the object to be left alone.
func Paused(o metav1.Object) bool {
	return SwitchedOn(o, clusterv1alpha1.PausedAnnotation)
}

// PausedCondition is the condition that a paused object shows.
func PausedCondition(o metav1.Object) metav1.Condition {
	return metav1.Condition{
		Type: clusterv1alpha1.ConditionPaused, Status: metav1.ConditionTrue, ObservedGeneration: o.GetGeneration(),
		Reason:  clusterv1alpha1.ReasonPausedByAnnotation,
		Message: "The annotation " + clusterv1alpha1.PausedAnnotation + " is set: nothing is done until it is gone",
	}
}
