package cloud

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
)

// refuse returns an error of the cloud itself.
func refuse(code fakecloudv1alpha1.ErrorCode, subject, format string, args ...any) error {
	return refuseFor(&fakecloudv1alpha1.CloudError{Code: code, Subject: subject}, fmt.Sprintf(format, args...))
}

func refuseFor(detail *fakecloudv1alpha1.CloudError, message string) error {
	s, err := status.New(grpcCode(detail.GetCode()), message).WithDetails(detail)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return s.Err()
}

func noDependency(kind, name string) error {
	return refuse(fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_SUCH_DEPENDENCY, kind, "No %s with the name %q exists.", kind, name)
}

func noResource(kind, id string) error {
	return refuse(fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_SUCH_RESOURCE, kind, "The %s %q could not be found.", kind, id)
}

func grpcCode(code fakecloudv1alpha1.ErrorCode) codes.Code {
	switch code {
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_BAD_REQUEST, fakecloudv1alpha1.ErrorCode_ERROR_CODE_PAGE_TOKEN_UNKNOWN:
		return codes.InvalidArgument
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_UNAUTHORIZED:
		return codes.Unauthenticated
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_FORBIDDEN:
		return codes.PermissionDenied
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_SUCH_RESOURCE, fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_SUCH_DEPENDENCY:
		return codes.NotFound
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_TOKEN_MISMATCH:
		return codes.AlreadyExists
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_IN_USE:
		return codes.FailedPrecondition
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_QUOTA_EXCEEDED, fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_CAPACITY,
		fakecloudv1alpha1.ErrorCode_ERROR_CODE_TOO_MANY_REQUESTS:
		return codes.ResourceExhausted
	case fakecloudv1alpha1.ErrorCode_ERROR_CODE_UNAVAILABLE:
		return codes.Unavailable
	default:
		return codes.Internal
	}
}

// usualError is how the cloud fails of its own accord.
type usualError struct {
	code  fakecloudv1alpha1.ErrorCode
	words string
}

var usualErrors = map[backendv1alpha1.NamedError]usualError{
	backendv1alpha1.NamedError_NAMED_ERROR_QUOTA: {
		fakecloudv1alpha1.ErrorCode_ERROR_CODE_QUOTA_EXCEEDED, "Quota exceeded for vm: requested 1, but already used 0 of 0"},
	backendv1alpha1.NamedError_NAMED_ERROR_CAPACITY: {
		fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_CAPACITY, "No valid host was found. There are not enough hosts available."},
	backendv1alpha1.NamedError_NAMED_ERROR_CREDENTIALS: {
		fakecloudv1alpha1.ErrorCode_ERROR_CODE_UNAUTHORIZED, "The request you have made requires authentication."},
	backendv1alpha1.NamedError_NAMED_ERROR_PERMISSION: {
		fakecloudv1alpha1.ErrorCode_ERROR_CODE_FORBIDDEN, "Policy does not allow this request to be performed."},
	backendv1alpha1.NamedError_NAMED_ERROR_RATE_LIMIT: {
		fakecloudv1alpha1.ErrorCode_ERROR_CODE_TOO_MANY_REQUESTS, "This request was rate-limited."},
	backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL: {
		fakecloudv1alpha1.ErrorCode_ERROR_CODE_INTERNAL, "Unexpected API error."},
	backendv1alpha1.NamedError_NAMED_ERROR_UNAVAILABLE: {
		fakecloudv1alpha1.ErrorCode_ERROR_CODE_UNAVAILABLE, "The server is currently unavailable."},
	backendv1alpha1.NamedError_NAMED_ERROR_DEPENDENCY: {
		fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_SUCH_DEPENDENCY, "No image with this name exists."},
}

// injected returns the error that a fault asks for. The name has been checked.
func injected(e *backendv1alpha1.FaultError) error {
	usual := usualErrors[e.GetName()]
	detail := &fakecloudv1alpha1.CloudError{Code: usual.code}
	if wait := e.GetRetryAfter().AsDuration(); wait > 0 {
		detail.RetryAfter = durationpb.New(wait.Round(time.Millisecond))
	}
	words := e.GetMessage()
	if words == "" {
		words = usual.words
	}
	return refuseFor(detail, words)
}
