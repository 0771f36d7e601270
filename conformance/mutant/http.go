package mutant

import driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"

func ofHTTP() []Mutant {
	return []Mutant{
		{Name: "another-after-silence", Check: "http/lost-answer", Proxy: true, mutate: retryingUnderANewKey},
		{Name: "gone-in-silence", Check: "http/failing", Proxy: true, mutate: as(driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN, notFound)},
		{Name: "empty-when-cut", Check: "http/truncated", Proxy: true, mutate: emptyOnFailure},
		{Name: "resending-itself", Check: "http/no-retry", Proxy: true, mutate: retryingItself},
	}
}
