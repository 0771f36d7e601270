package sdk

import (
	"sync"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// epochFence remembers the newest leader of each cluster. An older leader that shares the driver is
// refused. It need not outlive the process: a new process has no connections from calls of older
// leaders. The zero value is ready, and safe for concurrent use.
type epochFence struct {
	mu     sync.Mutex
	newest map[string]int64
}

// admit returns STALE_EPOCH for a mutation of a leader that is not the newest. Epoch 0 is unknown
// and passes.
func (f *epochFence) admit(request any) error {
	r, ok := request.(interface {
		GetMeta() *driverv1alpha1.RequestMeta
	})
	if !ok || !mutates(request) || r.GetMeta().GetLeaderEpoch() == 0 {
		return nil
	}
	cluster, epoch := r.GetMeta().GetClusterUid(), r.GetMeta().GetLeaderEpoch()
	f.mu.Lock()
	defer f.mu.Unlock()
	if epoch < f.newest[cluster] {
		return NewError(driverv1alpha1.ErrorReason_ERROR_REASON_STALE_EPOCH, "A newer leader of this cluster has called.")
	}
	if f.newest == nil {
		f.newest = map[string]int64{}
	}
	f.newest[cluster] = epoch
	return nil
}

// mutates says whether a request may change the cloud.
func mutates(request any) bool {
	switch request.(type) {
	case *driverv1alpha1.CreateMachineRequest, *driverv1alpha1.DeleteMachineRequest, *driverv1alpha1.AdoptMachineRequest:
		return true
	}
	return false
}
