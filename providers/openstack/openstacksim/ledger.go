package openstacksim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// How far a call is.
const (
	received  = backendv1alpha1.CallProgress_CALL_PROGRESS_RECEIVED
	done      = backendv1alpha1.CallProgress_CALL_PROGRESS_DONE
	answered  = backendv1alpha1.CallProgress_CALL_PROGRESS_ANSWERED
	abandoned = backendv1alpha1.CallProgress_CALL_PROGRESS_ABANDONED
)

// call is a call to the cloud's own API, as the ledger has it.
type call struct {
	Sequence  int64  `json:"sequence"`
	Revision  int64  `json:"revision"`
	Operation string `json:"operation"`
	// Subjects are the machines and clusters that the call names: several, where one list asks for several machines.
	Subjects subjects                     `json:"subjects,omitzero"`
	Resource string                       `json:"resource,omitempty"`
	Progress backendv1alpha1.CallProgress `json:"progress"`
	// Done says that it changed something.
	Done     bool      `json:"done,omitempty"`
	Code     int32     `json:"code,omitempty"`
	Message  string    `json:"message,omitempty"`
	Faults   []string  `json:"faults,omitempty"`
	Received time.Time `json:"received"`
	DoneAt   time.Time `json:"doneAt,omitzero"`
	Answered time.Time `json:"answered,omitzero"`
}

// wire is the call as the hooks tell it to one who asks for a machine, or for any.
func (c *call) wire(machine string) *backendv1alpha1.Call {
	return &backendv1alpha1.Call{
		Sequence: c.Sequence, Revision: c.Revision, Operation: c.Operation, ResourceId: c.Resource,
		ClusterUid: c.Subjects.cluster(), MachineUid: cmp.Or(machine, c.Subjects.machine()),
		Progress: c.Progress, Done: c.Done, Code: c.Code, Message: c.Message,
		FaultIds: slices.Clone(c.Faults), ReceiveTime: timestamppb.New(c.Received), DoneTime: stamp(c.DoneAt), AnswerTime: stamp(c.Answered),
	}
}

// stamp is nil for the zero time.
func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// maxCalls is how many calls the ledger keeps; counts go on beyond it.
const maxCalls = 500_000

// ledger holds the calls.
type ledger struct {
	last    int64
	calls   map[int64]*call
	history history
	// counts are by cluster ("" for all) and operation.
	counts map[string]map[string]int64
}

func newLedger() ledger {
	return ledger{calls: map[int64]*call{}, counts: map[string]map[string]int64{}}
}

// begin numbers a new call.
func (l *ledger) begin(one *call) {
	one.Sequence = l.last + 1
	l.count(one)
	l.update(one)
}

// update gives a call a new revision.
func (l *ledger) update(one *call) {
	one.Revision = l.history.note(one.Sequence)
	l.calls[one.Sequence] = one
	delete(l.calls, l.last-maxCalls)
	l.history.tidy(len(l.calls), l.current)
}

// restore takes in a call from the journal, as new or as further than before.
func (l *ledger) restore(one *call) {
	if one.Sequence > l.last {
		l.count(one)
	}
	l.history.restore(one.Revision, one.Sequence)
	l.calls[one.Sequence] = one
}

func (l *ledger) count(one *call) {
	l.last = one.Sequence
	for _, cluster := range slices.Concat([]string{""}, one.Subjects.Clusters) {
		if l.counts[cluster] == nil {
			l.counts[cluster] = map[string]int64{}
		}
		l.counts[cluster][one.Operation]++
	}
}

// abandonOpen ends the calls that were under way when the cloud was killed.
func (l *ledger) abandonOpen() {
	for _, sequence := range slices.Sorted(maps.Keys(l.calls)) {
		one := l.calls[sequence]
		if one.Progress == received || one.Progress == done {
			one.Progress = abandoned
			l.update(one)
		}
	}
}

// ordered returns the calls in the order of their revisions.
func (l *ledger) ordered() []*call {
	return slices.SortedFunc(maps.Values(l.calls), func(a, b *call) int { return cmp.Compare(a.Revision, b.Revision) })
}

func (l *ledger) current(ch change) bool {
	one := l.calls[ch.key]
	return one != nil && one.Revision == ch.revision
}
