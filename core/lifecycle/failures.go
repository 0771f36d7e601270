package lifecycle

import (
	"strings"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

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
