package wire

import (
	"strings"
	"time"
	"unicode"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/messages"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// Bounds on what a driver says of itself: it ends up in conditions.
const (
	MaxReason  = 128
	MaxMessage = 1024
	MaxFields  = 32
	// MaxWait bounds RetryInfo, poll_after and a driver's own deadlines, so that a wrong unit in a
	// driver stops no machine for good.
	MaxWait = time.Hour
)

// Classify turns the error of a call to the driver of that name into what core does about it.
// Only an ErrorInfo of the driver's own domain makes an error the driver's word. Without one the
// outcome is unknown, UNIMPLEMENTED aside. The argument sent says whether the request may have
// left core. The result has a reason fit for a condition and a stable, bounded message. err must
// not be nil.
func Classify(name string, err error, sent bool) *instance.Failure {
	s := status.Convert(err)
	details := detailsOf(s, name)
	failure := details.failure()
	failure.Class = classOf(s.Code(), details.info)
	if !sent && details.info == nil {
		failure.Class = instance.Unavailable
	}
	failure.Reason, failure.Message = conditionReason(details.info.GetReason()), messages.OneLine(s.Message(), MaxMessage)
	if details.info == nil {
		failure.Reason, failure.Message = withoutDriver(s, sent)
	}
	if failure.Reason == "" {
		failure.Reason = string(failure.Class)
	}
	return failure
}

// classOf is the contract's table of codes. info is nil when the driver itself did not speak.
func classOf(code codes.Code, info *errdetails.ErrorInfo) instance.Class {
	if code == codes.Unimplemented {
		return instance.Unimplemented
	}
	if info == nil {
		return instance.OutcomeUnknown
	}
	reason := contract.ParseReason(info.GetReason())
	// A known reason under a foreign code is a broken driver: neither of the two can be believed.
	if want, known := contract.Code(reason); known && want != code {
		return instance.OutcomeUnknown
	}
	switch code {
	case codes.InvalidArgument:
		// A page token says nothing of a spec.
		if reason == driverv1alpha1.ErrorReason_ERROR_REASON_PAGE_TOKEN_EXPIRED {
			return instance.Internal
		}
		return instance.SpecInvalid
	case codes.NotFound:
		return instance.NotFound
	case codes.AlreadyExists:
		return instance.Conflict
	case codes.Unauthenticated, codes.PermissionDenied:
		return instance.Credentials
	case codes.ResourceExhausted:
		return exhausted(reason)
	case codes.FailedPrecondition:
		return precondition(reason)
	case codes.Aborted:
		return instance.Pending
	case codes.Internal, codes.OutOfRange:
		return instance.Internal
	case codes.DataLoss:
		return instance.DataLoss
	}
	return instance.OutcomeUnknown
}

// exhausted tells the three reasons apart; one that core does not interpret is retried slowly, as a
// quota is.
func exhausted(reason driverv1alpha1.ErrorReason) instance.Class {
	switch reason {
	case driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE:
		return instance.Capacity
	case driverv1alpha1.ErrorReason_ERROR_REASON_RATE_LIMITED:
		return instance.RateLimited
	}
	return instance.Quota
}

func precondition(reason driverv1alpha1.ErrorReason) instance.Class {
	switch reason {
	case driverv1alpha1.ErrorReason_ERROR_REASON_ACCOUNT_CHANGED:
		return instance.AccountChanged
	case driverv1alpha1.ErrorReason_ERROR_REASON_STALE_EPOCH:
		return instance.StaleEpoch
	}
	return instance.Precondition
}

// details are those of a status that the contract names; unknown ones are ignored.
type details struct {
	info    *errdetails.ErrorInfo
	retry   *errdetails.RetryInfo
	bad     *errdetails.BadRequest
	partial *driverv1alpha1.PartialState
}

// detailsOf reads the details, none of them when no ErrorInfo of the driver's domain is among them.
func detailsOf(s *status.Status, name string) details {
	var found details
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == name && d.GetReason() != "" {
				found.info = d
			}
		case *errdetails.RetryInfo:
			found.retry = d
		case *errdetails.BadRequest:
			found.bad = d
		case *driverv1alpha1.PartialState:
			found.partial = d
		}
	}
	if found.info == nil {
		return details{}
	}
	return found
}

// failure holds what the details say beyond class, reason and message.
func (d details) failure() *instance.Failure {
	f := &instance.Failure{RetryAfter: BoundedWait(d.retry.GetRetryDelay().AsDuration())}
	for _, violation := range d.bad.GetFieldViolations() {
		if len(f.Fields) == MaxFields {
			break
		}
		f.Fields = append(f.Fields, instance.Field{
			Path:        messages.OneLine(violation.GetField(), MaxReason),
			Description: messages.OneLine(violation.GetDescription(), MaxMessage),
		})
	}
	// An id is written down once and for all: what is not one is dropped, never mended.
	if id := d.partial.GetProviderId(); messages.OneLine(id, contract.MaxProviderIDBytes) == id {
		f.ProviderID = id
	}
	if state := d.partial.GetLastKnownState(); len(state) <= contract.MaxPartialStateBytes {
		f.LastKnownState = state
	}
	return f
}

// ConnectionLost is the reason of a call whose connection broke under way.
const ConnectionLost = "ConnectionLost"

// withoutDriver words an error that the driver did not make. The transport's own text names
// addresses and changes from attempt to attempt, so it is for logs only.
func withoutDriver(s *status.Status, sent bool) (reason, message string) {
	if !sent {
		return "", "the request did not reach the driver"
	}
	switch s.Code() {
	case codes.DeadlineExceeded:
		return "DeadlineExceeded", "the driver did not answer in time"
	case codes.Canceled:
		return "Cancelled", "the call was cancelled before the driver answered"
	case codes.Unavailable:
		return ConnectionLost, "the connection to the driver broke before it answered"
	case codes.Unimplemented:
		return "", "the driver does not implement this call"
	}
	return "", messages.OneLine("the driver answered "+s.Code().String()+" without saying why in ErrorInfo: "+s.Message(), MaxMessage)
}

// Reason is an error's reason as a condition has it.
func Reason(reason driverv1alpha1.ErrorReason) string {
	return conditionReason(contract.ReasonName(reason))
}

// conditionReason turns QUOTA_EXCEEDED into QuotaExceeded; empty when nothing fit for a condition
// is left.
func conditionReason(reason string) string {
	var b strings.Builder
	start := true
	for _, r := range strings.ToLower(reason) {
		letter, digit := r >= 'a' && r <= 'z', r >= '0' && r <= '9'
		if b.Len() == MaxReason {
			break
		}
		// A condition's reason begins with a letter.
		if !letter && (!digit || b.Len() == 0) {
			start = true
			continue
		}
		if start {
			r = unicode.ToUpper(r)
		}
		start = false
		b.WriteRune(r)
	}
	return b.String()
}

// BoundedWait is a wait that a driver asks for, between 0 and MaxWait.
func BoundedWait(wait time.Duration) time.Duration {
	return min(max(wait, 0), MaxWait)
}

// Unavailable is the failure of a call that was never sent.
func Unavailable(reason, message string) *instance.Failure {
	return &instance.Failure{Class: instance.Unavailable, Reason: reason, Message: message}
}

// NameTaken is the failure of a machine whose uid is another's.
func NameTaken(message string) *instance.Failure {
	reason := driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN
	return &instance.Failure{Class: instance.Conflict, Reason: Reason(reason), Message: message}
}

// InvalidAnswer is OutcomeUnknown: the call may well have done what it should.
func InvalidAnswer(violation string) *instance.Failure {
	return &instance.Failure{
		Class:   instance.OutcomeUnknown,
		Reason:  "InvalidAnswer",
		Message: messages.OneLine("the driver's answer breaks the contract: "+violation, MaxMessage),
	}
}
