package instance

import (
	"fmt"
	"time"
)

// Class is what core does about a failed call. It follows from the gRPC code and the reason that
// errors.proto in proto/millwright/driver/v1alpha1 defines: see core/driver/wire.
type Class string

// The classes of failure.
const (
	// OutcomeUnknown: the call may have taken effect. Keep the finalizer, retry the same uid with
	// backoff, never replace, never forget.
	OutcomeUnknown Class = "OutcomeUnknown"
	// Unavailable: the request never left core (no such driver yet, not connected, not ready).
	// Nothing happened; wait.
	Unavailable Class = "Unavailable"
	// SpecInvalid is terminal for this spec.
	SpecInvalid Class = "SpecInvalid"
	// NotFound: the cloud knows nothing of the uid.
	NotFound Class = "NotFound"
	// Conflict: a foreign VM holds the name, or immutable fields differ. This machine fails; adopt
	// and delete nothing.
	Conflict Class = "Conflict"
	// Credentials: refused or lacking a permission. Not the machine's fault: never remediate.
	Credentials Class = "Credentials"
	// Quota of the account is used up. The machine shows it and tries again, slowly; others of the
	// account wait at its circuit breaker. Nothing is replaced.
	Quota Class = "Quota"
	// Capacity: the cloud has no room.
	Capacity Class = "Capacity"
	// RateLimited: wait Failure.RetryAfter.
	RateLimited Class = "RateLimited"
	// Precondition: show, retry slowly.
	Precondition Class = "Precondition"
	// AccountChanged: the credential names another account; replace and delete nothing.
	AccountChanged Class = "AccountChanged"
	// StaleEpoch: another leader is at work; stop leading.
	StaleEpoch Class = "StaleEpoch"
	// Pending: an operation on this machine is under way; retry in 1 to 5 s. Not a failure.
	Pending Class = "Pending"
	// Unimplemented: the feature is off until reconnect.
	Unimplemented Class = "Unimplemented"
	// Internal: the provider failed in a way that nothing else describes; backoff, alert.
	Internal Class = "Internal"
	// DataLoss: freeze this machine, alert, delete nothing.
	DataLoss Class = "DataLoss"
)

// Failure is how a call to a driver failed. It is an error.
type Failure struct {
	Class Class
	// Reason is the driver's ErrorInfo.reason in CamelCase, fit for a condition. It is the class
	// where the driver gave none.
	Reason string
	// Message is the cloud's own words, free of secrets, stable from attempt to attempt.
	Message string
	// Fields name what is wrong in the provider spec, where the driver said so.
	Fields []Field
	// RetryAfter is how long the driver asks core to wait before the next call; 0 leaves it to
	// core.
	RetryAfter time.Duration
	// ProviderID and LastKnownState come with a call that failed half-way. They are stored as after
	// a success.
	ProviderID     string
	LastKnownState []byte
}

// Field is one thing wrong with one field; Path is below cloudProviderSpec.
type Field struct {
	Path, Description string
}

// Error returns reason and message.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s: %s", f.Reason, f.Message)
}
