package contract

import (
	"strings"

	"google.golang.org/grpc/codes"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const reasonPrefix = "ERROR_REASON_"

// ReasonName returns what ErrorInfo.reason holds for r, e.g. "QUOTA_EXCEEDED"; empty for
// UNSPECIFIED and for values that this version does not know.
func ReasonName(r driverv1alpha1.ErrorReason) string {
	name, known := driverv1alpha1.ErrorReason_name[int32(r)]
	if !known || r == driverv1alpha1.ErrorReason_ERROR_REASON_UNSPECIFIED {
		return ""
	}
	return strings.TrimPrefix(name, reasonPrefix)
}

// ParseReason is ReasonName's inverse; UNSPECIFIED for a name that core does not interpret.
func ParseReason(name string) driverv1alpha1.ErrorReason {
	return driverv1alpha1.ErrorReason(driverv1alpha1.ErrorReason_value[reasonPrefix+name])
}

// Code returns the one code that a reason travels with. ok is false for a reason that core does not
// interpret: such a reason may come with any code.
func Code(r driverv1alpha1.ErrorReason) (code codes.Code, ok bool) {
	switch r {
	case driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID,
		driverv1alpha1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE,
		driverv1alpha1.ErrorReason_ERROR_REASON_PAGE_TOKEN_EXPIRED:
		return codes.InvalidArgument, true
	case driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND,
		driverv1alpha1.ErrorReason_ERROR_REASON_DELETION_PROTECTED,
		driverv1alpha1.ErrorReason_ERROR_REASON_VOLUMES_ATTACHED,
		driverv1alpha1.ErrorReason_ERROR_REASON_ACCOUNT_CHANGED,
		driverv1alpha1.ErrorReason_ERROR_REASON_STALE_EPOCH:
		return codes.FailedPrecondition, true
	case driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_CONFLICT,
		driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN:
		return codes.AlreadyExists, true
	case driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID:
		return codes.Unauthenticated, true
	case driverv1alpha1.ErrorReason_ERROR_REASON_PERMISSION_MISSING:
		return codes.PermissionDenied, true
	case driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED,
		driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE,
		driverv1alpha1.ErrorReason_ERROR_REASON_RATE_LIMITED:
		return codes.ResourceExhausted, true
	case driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING:
		return codes.Aborted, true
	case driverv1alpha1.ErrorReason_ERROR_REASON_MACHINE_NOT_FOUND:
		return codes.NotFound, true
	case driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL:
		return codes.Internal, true
	case driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN:
		return codes.Unavailable, true
	}
	return codes.Unknown, false
}
