package sdk

import "sync"

// Locks keep two calls for one machine from changing the cloud at the same time, for clouds that
// have no idempotency key of their own: look for what carries the uid and make what is missing
// under the machine's lock. They are of this process alone; another driver has its own. The zero
// value is ready, and safe for concurrent use.
type Locks struct{ held sync.Map }

// Lock takes the lock of the machine that a request is about, or returns OPERATION_PENDING while
// another call has it. The caller unlocks.
func (l *Locks) Lock(r interface {
	GetMeta() *RequestMeta
	GetMachine() *MachineRef
},
) (unlock func(), err error) {
	key := [2]string{r.GetMeta().GetClusterUid(), r.GetMachine().GetUid()}
	if _, busy := l.held.LoadOrStore(key, struct{}{}); busy {
		return nil, NewError(ReasonOperationPending, "Another call for this machine is under way.")
	}
	return func() { l.held.Delete(key) }, nil
}
