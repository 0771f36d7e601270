package driver

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

// translate returns the contract's error for one of the cloud's, in the cloud's own words. An error
// in which the cloud did not speak means that nobody knows what it did.
func translate(err error) error {
	s, said := status.Convert(err), cloudError(err)
	if s.Code() == codes.Canceled || s.Code() == codes.DeadlineExceeded {
		// Core gave the call up, and hears no answer.
		return err
	}
	if said == nil {
		return sdk.NewUnknownOutcome("The cloud did not answer.")
	}
	reason := driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL
	var options []sdk.ErrorOption
	switch said.GetCode() {
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_UNAVAILABLE:
		return sdk.NewUnknownOutcome(s.Message())
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_BAD_REQUEST:
		reason = driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID
		options = append(options, sdk.WithField(said.GetSubject(), s.Message()))
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_UNAUTHORIZED:
		reason = driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_FORBIDDEN:
		reason = driverv1alpha1.ErrorReason_ERROR_REASON_PERMISSION_MISSING
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_SUCH_DEPENDENCY:
		reason = driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_TOKEN_MISMATCH:
		reason = driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_CONFLICT
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_QUOTA_EXCEEDED:
		reason = driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED
		options = append(options, sdk.WithQuota(said.GetSubject(), s.Message()))
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_CAPACITY:
		reason = driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_TOO_MANY_REQUESTS:
		reason = driverv1alpha1.ErrorReason_ERROR_REASON_RATE_LIMITED
		if wait := said.GetRetryAfter().AsDuration(); wait > 0 {
			options = append(options, sdk.WithRetryAfter(wait))
		}
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_IN_USE, fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_SUCH_RESOURCE:
		// What we found a moment ago has changed under another call for the same machine.
		reason = driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING
	}
	return sdk.NewError(reason, s.Message(), options...)
}

// cloudError returns what the cloud itself said, nil when it said nothing.
func cloudError(err error) *fakecloudv1alpha1.CloudError {
	for _, detail := range status.Convert(err).Details() {
		if said, ok := detail.(*fakecloudv1alpha1.CloudError); ok {
			return said
		}
	}
	return nil
}

// isRefused says whether the cloud answered that it does not do what it was asked for: it neither
// was silent nor broke down over it.
func isRefused(err error) bool {
	said := cloudError(err)
	return said != nil && said.GetCode() != fakecloudv1alpha1.ErrorCode_ERROR_CODE_UNAVAILABLE &&
		said.GetCode() != fakecloudv1alpha1.ErrorCode_ERROR_CODE_INTERNAL
}

// isGone says whether the cloud answered that the resource does not exist.
func isGone(err error) bool {
	return cloudError(err).GetCode() == fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_SUCH_RESOURCE
}
