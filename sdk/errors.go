package sdk

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// ErrorOption adds a detail to an error.
type ErrorOption func(*contractError)

// NewError returns an error in the contract's terms: the reason's one code, and an ErrorInfo whose
// domain Serve fills in. message holds the cloud's own words where it said something. It is stable
// from call to call (no request ids, no times) and free of secrets. It may be wrapped: core then
// sees the whole text with this reason. A reason that this version does not know counts as
// PROVIDER_INTERNAL.
func NewError(reason driverv1alpha1.ErrorReason, message string, options ...ErrorOption) error {
	code, known := contract.Code(reason)
	if !known {
		code, reason = codes.Internal, driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL
	}
	e := &contractError{code: code, reason: contract.ReasonName(reason), message: message}
	for _, option := range options {
		option(e)
	}
	return e
}

// NewUnknownOutcome returns an error that says: nobody knows whether the cloud has done, or may yet
// do, what was asked. It is for clouds that do not answer in time or break off. Core keeps the
// machine and asks again; the code is UNAVAILABLE, the reason OUTCOME_UNKNOWN. When the call's own
// context has ended, returning the context's error does the same.
func NewUnknownOutcome(message string, options ...ErrorOption) error {
	return NewError(driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN, message, options...)
}

// WithRetryAfter says how long to wait before the next attempt (RetryInfo).
func WithRetryAfter(wait time.Duration) ErrorOption {
	return func(e *contractError) { e.retry = &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)} }
}

// WithField names a field that is wrong (BadRequest): its path below cloudProviderSpec, e.g.
// "networks[0].subnet", and what would be right. It may be given several times. description must
// not repeat a secret's value.
func WithField(path, description string) ErrorOption {
	violation := &errdetails.BadRequest_FieldViolation{Field: path, Description: description}
	return func(e *contractError) { e.fields = append(e.fields, violation) }
}

// WithQuota names a quota that is used up (QuotaFailure): of what, and the cloud's own words. It
// may be given several times.
func WithQuota(subject, description string) ErrorOption {
	violation := &errdetails.QuotaFailure_Violation{Subject: subject, Description: description}
	return func(e *contractError) { e.quotas = append(e.quotas, violation) }
}

// WithPartialState hands over what must survive a call that failed half-way (PartialState). Either
// may be empty. Left out are a state of more than contract.MaxPartialStateBytes, a provider id of
// more than 512 bytes, and a state that holds a secret of the call: an account that may come as one
// is handed over as a hash. The driver finds its resources by uid all the same.
func WithPartialState(providerID string, state []byte) ErrorOption {
	partial := &driverv1alpha1.PartialState{}
	if len(providerID) <= maxDetailText {
		partial.ProviderId = providerID
	}
	if len(state) <= contract.MaxPartialStateBytes {
		partial.LastKnownState = bytes.Clone(state)
	}
	return func(e *contractError) { e.partial = partial }
}

// AddDetails returns err with more details, for what only the end of a method knows. Of RetryInfo
// and PartialState, of which there is one, the later counts. What is not an error of NewError, nor
// wraps one, is returned as it is: make one of it first.
func AddDetails(err error, options ...ErrorOption) error {
	own, ok := errors.AsType[*contractError](err)
	if !ok {
		return err
	}
	more := *own
	more.fields, more.quotas = slices.Clip(own.fields), slices.Clip(own.quotas)
	// What was wrapped around it says where it came from.
	more.message = err.Error()
	for _, option := range options {
		option(&more)
	}
	return &more
}

// FieldViolations returns the fields that an error of WithField or ReadSpec names, in its order: an
// answer of ValidateProviderSpec. There are none in another error, or in nil.
func FieldViolations(err error) []*driverv1alpha1.FieldViolation {
	var named []*driverv1alpha1.FieldViolation
	for _, detail := range status.Convert(err).Details() {
		bad, _ := detail.(*errdetails.BadRequest)
		for _, v := range bad.GetFieldViolations() {
			named = append(named, &driverv1alpha1.FieldViolation{Field: v.GetField(), Description: v.GetDescription()})
		}
	}
	return named
}

// maxDetailText is the longest text within a detail, in bytes.
const maxDetailText = 512

// contractError is an error of NewError. It never changes once made.
type contractError struct {
	code    codes.Code
	reason  string
	message string
	partial *driverv1alpha1.PartialState
	retry   *errdetails.RetryInfo
	fields  []*errdetails.BadRequest_FieldViolation
	quotas  []*errdetails.QuotaFailure_Violation
}

// Error returns the message.
func (e *contractError) Error() string { return e.message }

// GRPCStatus returns the status with its details, but without the domain, which only the server
// knows.
func (e *contractError) GRPCStatus() *status.Status {
	return compose(e.code, e.message, e.details(""))
}

// details are in the order of their worth: what does not fit is left out from the end. The caller
// may change them.
func (e *contractError) details(domain string) []protoadapt.MessageV1 {
	all := []protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: domain, Reason: e.reason}}
	if e.partial != nil {
		all = append(all, proto.CloneOf(e.partial))
	}
	if e.retry != nil {
		all = append(all, e.retry)
	}
	if len(e.fields) > 0 {
		all = append(all, proto.CloneOf(&errdetails.BadRequest{FieldViolations: e.fields}))
	}
	if len(e.quotas) > 0 {
		all = append(all, proto.CloneOf(&errdetails.QuotaFailure{Violations: e.quotas}))
	}
	return all
}
