package api

import (
	"net/http"
	"time"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// defaultRetryAfter is how long callers are told to wait that were too fast, unless a fault says
// otherwise.
const defaultRetryAfter = time.Second

// Injected returns the error that a fault asks for, as the service that was called would say it.
// The fault's words, if it has any, take the place of the service's own.
func (call *Call) Injected(e *backendv1alpha1.FaultError) error {
	r := usual(call, e.GetName())
	if e.GetMessage() != "" {
		r.Message = e.GetMessage()
	}
	if e.GetName() == backendv1alpha1.NamedError_NAMED_ERROR_RATE_LIMIT {
		if r.RetryAfter = e.GetRetryAfter().AsDuration(); r.RetryAfter <= 0 {
			r.RetryAfter = defaultRetryAfter
		}
	}
	return r
}

// usual is how the services fail of their own accord.
func usual(call *Call, name backendv1alpha1.NamedError) *Refusal {
	ofNeutron := call.Route.Service == Neutron
	switch name {
	case backendv1alpha1.NamedError_NAMED_ERROR_QUOTA:
		return usualQuota(call)
	case backendv1alpha1.NamedError_NAMED_ERROR_CAPACITY:
		return usualCapacity(ofNeutron)
	case backendv1alpha1.NamedError_NAMED_ERROR_CREDENTIALS:
		return &Refusal{Status: http.StatusUnauthorized, Message: RequiresAuthentication}
	case backendv1alpha1.NamedError_NAMED_ERROR_PERMISSION:
		if ofNeutron {
			return &Refusal{Status: http.StatusForbidden, Kind: "PolicyNotAuthorized", Message: "rule:" + call.Route.policy() + " is disallowed by policy"}
		}
		return &Refusal{Status: http.StatusForbidden, Message: "Policy doesn't allow " + call.Route.policy() + " to be performed."}
	case backendv1alpha1.NamedError_NAMED_ERROR_RATE_LIMIT:
		return &Refusal{Status: http.StatusTooManyRequests, Message: "This request was rate-limited.", Outside: ofNeutron}
	case backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL:
		if ofNeutron {
			return &Refusal{Status: http.StatusInternalServerError, Kind: "HTTPInternalServerError",
				Message: "Request Failed: internal server error while processing your request."}
		}
		return InternalError()
	case backendv1alpha1.NamedError_NAMED_ERROR_UNAVAILABLE:
		return &Refusal{Status: http.StatusServiceUnavailable, Outside: true, Message: "The server is currently unavailable. Please try again at a later time."}
	default:
		return usualDependency(call)
	}
}

func usualQuota(call *Call) *Refusal {
	switch call.Route.Service {
	case Neutron:
		return &Refusal{Status: http.StatusConflict, Kind: "OverQuota", Message: "Quota exceeded for resources: ['" + call.Route.Resource + "']."}
	case Cinder:
		return &Refusal{Status: http.StatusRequestEntityTooLarge,
			Message: "VolumeLimitExceeded: Maximum number of volumes allowed (0) exceeded for quota 'volumes'."}
	}
	return &Refusal{Status: http.StatusForbidden, Message: "Quota exceeded for instances: Requested 1, but already used 0 of 0 instances"}
}

func usualCapacity(ofNeutron bool) *Refusal {
	if ofNeutron {
		return &Refusal{Status: http.StatusConflict, Kind: "IpAddressGenerationFailure", Message: "No more IP addresses available on network."}
	}
	return &Refusal{Status: http.StatusConflict, Message: "No valid host was found. There are not enough hosts available."}
}

// InternalError is how Nova says that it has an error of its own.
func InternalError() *Refusal {
	return &Refusal{Status: http.StatusInternalServerError, Message: "Unexpected API Error. Please report this at " +
		"http://bugs.launchpad.net/nova/ and attach the Nova API log if possible.\n<class 'oslo_messaging.exceptions.MessagingTimeout'>"}
}

func usualDependency(call *Call) *Refusal {
	switch call.Route.Service {
	case Neutron:
		return &Refusal{Status: http.StatusNotFound, Kind: "NetworkNotFound", Message: "Network could not be found."}
	case Cinder:
		return &Refusal{Status: http.StatusBadRequest, Message: "Invalid volume type provided."}
	}
	return &Refusal{Status: http.StatusBadRequest, Message: "Invalid imageRef provided."}
}
