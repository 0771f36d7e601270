package session

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

// verdict carries the contract's error through net/http and gophercloud.
type verdict struct{ error }

// Unwrap returns the contract's error.
func (v *verdict) Unwrap() error { return v.error }

// lost is a request that got no whole answer: nobody knows what came of it. It unwraps to nothing,
// since a dialer's timeout passes for the end of a context.
type lost struct{ host, words string }

// Error says why, in words that are the same the next time.
func (l *lost) Error() string { return "The cloud did not answer: " + l.host + ": " + l.words + "." }

// explained is the contract's error for an answer of the cloud, which it still holds.
type explained struct {
	error
	answer gophercloud.ErrUnexpectedResponseCode
}

// Unwrap returns both.
func (e *explained) Unwrap() []error { return []error{e.error, e.answer} }

// contractual is what errors of the SDK are.
type contractual interface {
	error
	GRPCStatus() *status.Status
}

// Explain returns the contract's error for one of gophercloud's clients, in the cloud's own words.
// It is nil for nil, and the error itself where that is the contract's already, or the end of the
// caller's context. What was not answered, or not to its end, is OUTCOME_UNKNOWN. The text is the
// same from call to call: request ids, times and the ports of connections are left out, and so is
// user data, which Nova repeats.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	if v, is := errors.AsType[*verdict](err); is {
		return v.error
	}
	if _, is := errors.AsType[contractual](err); is {
		return err
	}
	if l, is := errors.AsType[*lost](err); is {
		return sdk.NewUnknownOutcome(l.Error())
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if answer, is := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err); is {
		return &explained{explainAnswer(answer), answer}
	}
	if failed, is := errors.AsType[*url.Error](err); is {
		return sdk.NewUnknownOutcome((&lost{host: hostOf(failed.URL), words: wordsOf(failed.Err)}).Error())
	}
	if unreadable(err) {
		return sdk.NewUnknownOutcome("The cloud's answer cannot be read: " + stable(err.Error()) + ".")
	}
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL, stable(err.Error()))
}

// unreadable says whether gophercloud got an answer that is not what it should be. What was asked
// for may well have been done.
func unreadable(err error) bool {
	_, broken := errors.AsType[*json.SyntaxError](err)
	_, other := errors.AsType[*json.UnmarshalTypeError](err)
	_, without := errors.AsType[gophercloud.ErrMissingResourceKey](err)
	_, form := errors.AsType[gophercloud.ErrUnexpectedType](err)
	cut := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	return broken || other || without || form || cut || errors.Is(err, errEmpty)
}

// explainAnswer returns the contract's error for an answer that is none of success.
func explainAnswer(answer gophercloud.ErrUnexpectedResponseCode) error {
	said := readWords(answer.Body)
	message := said.or(answer)
	reason := reasonFor(answer, said)
	var options []sdk.ErrorOption
	if asksToWait(answer.Actual) && reason != driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED {
		if wait := retryAfter(answer.ResponseHeader, time.Now()); wait > 0 {
			options = append(options, sdk.WithRetryAfter(wait))
		}
	}
	if answer.Actual == http.StatusNotAcceptable && reason == driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID {
		options = append(options, sdk.WithField("computeAPIVersion", message))
	}
	return newError(reason, message, options...)
}

// ExplainFault returns the contract's error for what Nova says only of the server that it has
// taken: see ReasonOfFault.
func ExplainFault(reason driverv1alpha1.ErrorReason, message string) error {
	return newError(reason, stable(message))
}

// newError is the contract's error for what the cloud has refused; of a quota it says which.
func newError(reason driverv1alpha1.ErrorReason, message string, options ...sdk.ErrorOption) error {
	if reason == driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED {
		for _, subject := range quotasIn(message) {
			options = append(options, sdk.WithQuota(subject, message))
		}
	}
	return sdk.NewError(reason, message, options...)
}

// reasonFor says what an answer means: by its type where it has one, then by what it says, then by
// its status.
func reasonFor(answer gophercloud.ErrUnexpectedResponseCode, said words) driverv1alpha1.ErrorReason {
	if reason := reasonOfType(said.kind); reason != 0 {
		return reason
	}
	if reason := reasonOfPhrase(answer.Actual, said); reason != 0 {
		return reason
	}
	switch answer.Actual {
	case http.StatusBadRequest, http.StatusNotAcceptable:
		if isOfProxy(answer, said) {
			return driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN
		}
		return driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID
	case http.StatusUnauthorized:
		return driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID
	case http.StatusForbidden:
		return driverv1alpha1.ErrorReason_ERROR_REASON_PERMISSION_MISSING
	case http.StatusNotFound:
		if said.kind == "" {
			return driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN // a proxy's: it has not found the service
		}
		return driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND
	case http.StatusConflict:
		return driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING
	case http.StatusTooManyRequests:
		return driverv1alpha1.ErrorReason_ERROR_REASON_RATE_LIMITED
	case http.StatusRequestEntityTooLarge:
		// OpenStack has said this for "too many requests"; a proxy means what the words say.
		if said.kind == "overLimit" || answer.ResponseHeader.Get("Retry-After") != "" {
			return driverv1alpha1.ErrorReason_ERROR_REASON_RATE_LIMITED
		}
		return driverv1alpha1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return driverv1alpha1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN
	}
	return driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL
}

// isOfProxy says whether a proxy, and none of the services, has found a request wanting. It knows
// nothing of the spec, and may take the same request in a minute.
func isOfProxy(answer gophercloud.ErrUnexpectedResponseCode, said words) bool {
	return (answer.Actual == http.StatusBadRequest || answer.Actual == http.StatusNotAcceptable) && !said.service
}

// IsGone says whether Nova or Neutron said that the thing asked for is not there: Nova's
// itemNotFound, Neutron's PortNotFound and so on. A 404 of a proxy, or of a path that a service
// does not have, says nothing about the thing: who believed it would forget VMs. Like all of these
// it knows errors before and after Explain.
func IsGone(err error) bool {
	kind := kindOf(err)
	return isNotFound(err) && strings.HasSuffix(kind, "NotFound") && kind != noSuchPath
}

// IsWithout says whether Neutron said that it has no such path: it runs without the extension.
func IsWithout(err error) bool { return isNotFound(err) && kindOf(err) == noSuchPath }

// noSuchPath is how Neutron calls a path that it does not serve.
const noSuchPath = "HTTPNotFound"

// isNotFound says whether anybody answered 404.
func isNotFound(err error) bool { return gophercloud.ResponseCodeIs(err, http.StatusNotFound) }

// IsRefused says whether it is certain that the cloud did nothing: it was not asked, or it found
// the request wanting, and not a proxy before it.
func IsRefused(err error) bool {
	if _, is := errors.AsType[*verdict](err); is {
		return true
	}
	answer, is := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err)
	return is && answer.Actual/100 == 4 && answer.Actual != http.StatusRequestTimeout && !isOfProxy(answer, readWords(answer.Body))
}

// IsBadRequest says whether the cloud answered 400.
func IsBadRequest(err error) bool { return gophercloud.ResponseCodeIs(err, http.StatusBadRequest) }

// IsConflict says whether the cloud answered 409.
func IsConflict(err error) bool { return gophercloud.ResponseCodeIs(err, http.StatusConflict) }

// IsChanged says whether Neutron refused a change because somebody else's came first (If-Match).
func IsChanged(err error) bool { return gophercloud.ResponseCodeIs(err, http.StatusPreconditionFailed) }

// IsPortInUse says whether Nova refused a server because another one has the port of that id.
func IsPortInUse(err error, id string) bool {
	answer, is := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err)
	return is && answer.Actual == http.StatusConflict && readWords(answer.Body).names("Port "+id+" is still in use")
}

// IsMACInUse says whether Neutron refused a port because its network has one of that MAC address.
func IsMACInUse(err error) bool { return kindOf(err) == "MacAddressInUse" }

// IsMACForbidden says whether Neutron's policy forbids to choose a port's MAC address, as it does
// on another project's network.
func IsMACForbidden(err error) bool {
	answer, is := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err)
	return is && answer.Actual == http.StatusForbidden && readWords(answer.Body).names("create_port:mac_address")
}

// IsFloatingIPTaken says whether Neutron refused a floating IP because its port has one.
func IsFloatingIPTaken(err error) bool { return kindOf(err) == "FloatingIPPortAlreadyAssociated" }

// kindOf returns what the service calls its error, empty where it is no answer of a service.
func kindOf(err error) string {
	answer, is := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err)
	if !is {
		return ""
	}
	return readWords(answer.Body).kind
}
