package fleet

import (
	"errors"
	"maps"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Soon is when to look again at what changed under our hands; its event is on the way.
const Soon = 100 * time.Millisecond

// ErrStale says that the cache is behind the API server.
var ErrStale = errors.New("the cache is behind the API server")

// atMost is how often a status is written in which only numbers have changed. A thousand Machines that become Ready one
// after the other are not worth a thousand writes.
const atMost = time.Second

// Due says whether a status is to be written now, and if it is to be written, but later, in how long. changed says that
// it differs from what is written; urgent, that it differs in more than numbers; written is when it was last written.
func Due(changed, urgent bool, written, now time.Time) (time.Duration, bool) {
	if !changed {
		return 0, false
	}
	if wait := written.Add(atMost).Sub(now); !urgent && wait > 0 {
		return wait, false
	}
	return 0, true
}

// SameVerdicts says whether two lists have the same conditions with the same status and reason. A change of messages
// alone is not urgent.
func SameVerdicts(a, b []metav1.Condition) bool {
	type verdict struct {
		kind, reason string
		status       metav1.ConditionStatus
	}
	verdicts := func(conditions []metav1.Condition) map[verdict]bool {
		set := map[verdict]bool{}
		for _, c := range conditions {
			set[verdict{c.Type, c.Reason, c.Status}] = true
		}
		return set
	}
	return len(a) == len(b) && maps.Equal(verdicts(a), verdicts(b))
}

// maxMessage is how many bytes of a condition's message the API server takes in any case.
const maxMessage = 32768

// Bounded is the message, or as much of it as fits into a condition, cut between two characters.
func Bounded(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	end := maxMessage
	for end > maxMessage-utf8.UTFMax && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end]
}

// Sooner is the shorter of two times; 0 means never.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Result is what a reconcile returns: an error is retried with backoff, else it comes again after that time; 0 means never.
func Result(again time.Duration, err error) (ctrl.Result, error) {
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: again}, nil
}
