package openstacksim

import (
	"net/http"
	"time"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// defaultRetryAfter is how long callers are told to wait that were too fast, unless a fault says
// otherwise.
const defaultRetryAfter = time.Second

// injected returns the error that a fault asks for, as the service that was called would say it.
// The fault's words, if it has any, take the place of the service's own.
func (t *turn) injected(e *backendv1alpha1.FaultError) error {
	r := usual(t, e.GetName())
	if e.GetMessage() != "" {
		r.message = e.GetMessage()
	}
	if e.GetName() == backendv1alpha1.NamedError_NAMED_ERROR_RATE_LIMIT {
		if r.retryAfter = e.GetRetryAfter().AsDuration(); r.retryAfter <= 0 {
			r.retryAfter = defaultRetryAfter
		}
	}
	return r
}

// usual is how the services fail of their own accord.
func usual(t *turn, name backendv1alpha1.NamedError) *refusal {
	ofNeutron := t.route.service == neutron
	switch name {
	case backendv1alpha1.NamedError_NAMED_ERROR_QUOTA:
		return usualQuota(t)
	case backendv1alpha1.NamedError_NAMED_ERROR_CAPACITY:
		return usualCapacity(ofNeutron)
	case backendv1alpha1.NamedError_NAMED_ERROR_CREDENTIALS:
		return &refusal{status: http.StatusUnauthorized, message: requiresAuthentication}
	case backendv1alpha1.NamedError_NAMED_ERROR_PERMISSION:
		if ofNeutron {
			return &refusal{status: http.StatusForbidden, kind: "PolicyNotAuthorized", message: "rule:" + t.route.policy() + " is disallowed by policy"}
		}
		return &refusal{status: http.StatusForbidden, message: "Policy doesn't allow " + t.route.policy() + " to be performed."}
	case backendv1alpha1.NamedError_NAMED_ERROR_RATE_LIMIT:
		return &refusal{status: http.StatusTooManyRequests, message: "This request was rate-limited.", outside: ofNeutron}
	case backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL:
		return usualInternal(ofNeutron)
	case backendv1alpha1.NamedError_NAMED_ERROR_UNAVAILABLE:
		return &refusal{status: http.StatusServiceUnavailable, outside: true, message: "The server is currently unavailable. Please try again at a later time."}
	default:
		return usualDependency(t)
	}
}

func usualQuota(t *turn) *refusal {
	switch t.route.service {
	case neutron:
		return &refusal{status: http.StatusConflict, kind: "OverQuota", message: "Quota exceeded for resources: ['" + t.route.resource + "']."}
	case cinder:
		return &refusal{status: http.StatusRequestEntityTooLarge,
			message: "VolumeLimitExceeded: Maximum number of volumes allowed (0) exceeded for quota 'volumes'."}
	}
	return &refusal{status: http.StatusForbidden, message: "Quota exceeded for instances: Requested 1, but already used 0 of 0 instances"}
}

func usualCapacity(ofNeutron bool) *refusal {
	if ofNeutron {
		return &refusal{status: http.StatusConflict, kind: "IpAddressGenerationFailure", message: "No more IP addresses available on network."}
	}
	return &refusal{status: http.StatusConflict, message: "No valid host was found. There are not enough hosts available."}
}

func usualInternal(ofNeutron bool) *refusal {
	if ofNeutron {
		return &refusal{status: http.StatusInternalServerError, kind: "HTTPInternalServerError",
			message: "Request Failed: internal server error while processing your request."}
	}
	return &refusal{status: http.StatusInternalServerError, message: "Unexpected API Error. Please report this at " +
		"http://bugs.launchpad.net/nova/ and attach the Nova API log if possible.\n<class 'oslo_messaging.exceptions.MessagingTimeout'>"}
}

func usualDependency(t *turn) *refusal {
	switch t.route.service {
	case neutron:
		return &refusal{status: http.StatusNotFound, kind: "NetworkNotFound", message: "Network could not be found."}
	case cinder:
		return &refusal{status: http.StatusBadRequest, message: "Invalid volume type provided."}
	}
	return &refusal{status: http.StatusBadRequest, message: "Invalid imageRef provided."}
}
