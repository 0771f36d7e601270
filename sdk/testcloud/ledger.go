package testcloud

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
	Received  = backendv1alpha1.CallProgress_CALL_PROGRESS_RECEIVED
	Done      = backendv1alpha1.CallProgress_CALL_PROGRESS_DONE
	Answered  = backendv1alpha1.CallProgress_CALL_PROGRESS_ANSWERED
	Abandoned = backendv1alpha1.CallProgress_CALL_PROGRESS_ABANDONED
)

// Call is a call to the cloud's own API, as the ledger has it.
type Call struct {
	Sequence  int64  `json:"sequence"`
	Revision  int64  `json:"revision"`
	Operation string `json:"operation"`
	// Clusters and Machines are the uids that the call names: several, where one list asks for
	// several machines.
	Clusters []string                     `json:"clusters,omitempty"`
	Machines []string                     `json:"machines,omitempty"`
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

// Cluster is the uid of the cluster that the call is about; empty when it is about none or several.
func (c *Call) Cluster() string { return only(c.Clusters) }

// Machine is the uid of the machine that the call is about; empty when it is about none or several.
func (c *Call) Machine() string { return only(c.Machines) }

func only(all []string) string {
	if len(all) != 1 {
		return ""
	}
	return all[0]
}

// Changed notes that the call took effect on a resource.
func (c *Call) Changed(id string) { c.Resource, c.Done = id, true }

// told is the call as the hooks tell it to one who asks for a machine, or for any.
func (c *Call) told(machine string) *backendv1alpha1.Call {
	return &backendv1alpha1.Call{
		Sequence: c.Sequence, Revision: c.Revision, Operation: c.Operation, ResourceId: c.Resource,
		ClusterUid: c.Cluster(), MachineUid: cmp.Or(machine, c.Machine()),
		Progress: c.Progress, Done: c.Done, Code: c.Code, Message: c.Message,
		FaultIds: slices.Clone(c.Faults), ReceiveTime: timestamppb.New(c.Received), DoneTime: Stamp(c.DoneAt), AnswerTime: Stamp(c.Answered),
	}
}

// Stamp is nil for the zero time.
func Stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// Now is the wall clock without its monotonic part, as it comes back from a journal.
func Now() time.Time { return time.Now().Round(0).UTC() }

// maxCalls is how many calls the ledger keeps; counts go on beyond it.
const maxCalls = 500_000

// Ledger holds the calls. The zero value is empty.
type Ledger struct {
	last    int64
	calls   map[int64]*Call
	history History
	// counts are by cluster ("" for all) and operation.
	counts map[string]map[string]int64
}

// begin numbers a new call.
func (l *Ledger) begin(one *Call) {
	one.Sequence = l.last + 1
	l.count(one)
	l.update(one)
}

// update gives a call a new revision.
func (l *Ledger) update(one *Call) {
	one.Revision = l.history.Note(one.Sequence)
	l.keep(one)
	delete(l.calls, l.last-maxCalls)
	l.history.Tidy(len(l.calls), l.current)
}

func (l *Ledger) keep(one *Call) {
	if l.calls == nil {
		l.calls = map[int64]*Call{}
	}
	l.calls[one.Sequence] = one
}

func (l *Ledger) count(one *Call) {
	l.last = one.Sequence
	if l.counts == nil {
		l.counts = map[string]map[string]int64{}
	}
	for _, cluster := range slices.Concat([]string{""}, one.Clusters) {
		if l.counts[cluster] == nil {
			l.counts[cluster] = map[string]int64{}
		}
		l.counts[cluster][one.Operation]++
	}
}

// Restore takes in a call from the journal, as new or as further than before.
func (l *Ledger) Restore(one *Call) {
	if one.Sequence > l.last {
		l.count(one)
	}
	l.history.Restore(one.Revision, one.Sequence)
	l.keep(one)
}

// LedgerTotals are what cannot be counted again from the calls that are kept.
type LedgerTotals struct {
	// Calls are counts by cluster ("" for all) and operation.
	Calls map[string]map[string]int64 `json:"calls"`
	// LastCall and LastCallRevision are where the ledger goes on.
	LastCall         int64 `json:"lastCall"`
	LastCallRevision int64 `json:"lastCallRevision"`
}

// Totals are those of now. They share the ledger's counts.
func (l *Ledger) Totals() LedgerTotals {
	return LedgerTotals{Calls: l.counts, LastCall: l.last, LastCallRevision: l.history.last}
}

// RestoreTotals begins where an earlier ledger ended.
func (l *Ledger) RestoreTotals(t LedgerTotals) {
	l.counts, l.last, l.history.last = t.Calls, t.LastCall, t.LastCallRevision
}

// AbandonOpen ends the calls that were under way when the cloud was killed.
func (l *Ledger) AbandonOpen() {
	for _, sequence := range slices.Sorted(maps.Keys(l.calls)) {
		one := l.calls[sequence]
		if one.Progress == Received || one.Progress == Done {
			one.Progress = Abandoned
			l.update(one)
		}
	}
}

// Counts are how many calls there were of each operation for a cluster; of an empty uid, for all.
func (l *Ledger) Counts(cluster string) map[string]int64 { return maps.Clone(l.counts[cluster]) }

// Ordered returns the calls that are kept in the order of their revisions.
func (l *Ledger) Ordered() []*Call {
	return slices.SortedFunc(maps.Values(l.calls), func(a, b *Call) int { return cmp.Compare(a.Revision, b.Revision) })
}

func (l *Ledger) current(ch Change) bool {
	one := l.calls[ch.Key]
	return one != nil && one.Revision == ch.Revision
}
