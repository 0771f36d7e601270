package contract

import (
	"testing"

	"google.golang.org/grpc/codes"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func TestEveryReasonHasANameAndACode(t *testing.T) {
	for value, name := range driverv1alpha1.ErrorReason_name {
		reason := driverv1alpha1.ErrorReason(value)
		if reason == driverv1alpha1.ErrorReason_ERROR_REASON_UNSPECIFIED {
			continue
		}
		if got := ParseReason(ReasonName(reason)); got != reason {
			t.Errorf("%s: its name %q parses as %s", name, ReasonName(reason), got)
		}
		if code, ok := Code(reason); !ok || code == codes.OK || code == codes.Unknown {
			t.Errorf("%s has no code of its own: %s, %t", name, code, ok)
		}
	}
}

func TestReasonsThatCoreDoesNotInterpret(t *testing.T) {
	unspecified := driverv1alpha1.ErrorReason_ERROR_REASON_UNSPECIFIED
	if got := ReasonName(unspecified); got != "" {
		t.Errorf("UNSPECIFIED has the name %q, want none: a driver must not send it", got)
	}
	if got := ReasonName(driverv1alpha1.ErrorReason(9999)); got != "" {
		t.Errorf("an unknown value has the name %q, want none", got)
	}
	for _, name := range []string{"", "UNSPECIFIED", "MY_OWN_REASON", "quota_exceeded"} {
		if got := ParseReason(name); got != unspecified {
			t.Errorf("ParseReason(%q) = %s, want UNSPECIFIED", name, got)
		}
	}
	if code, ok := Code(unspecified); ok {
		t.Errorf("UNSPECIFIED has the code %s, want none", code)
	}
}
