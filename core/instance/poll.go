package instance

// PollInterval is how often a VM is polled.
type PollInterval string

// The intervals.
const (
	// PollNever: there is nothing to see.
	PollNever PollInterval = ""
	// PollPending: something is expected to change soon.
	PollPending PollInterval = "Pending"
	// PollSettled: nothing is; a poll now and then notices what was done from outside.
	PollSettled PollInterval = "Settled"
)
