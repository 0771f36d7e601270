package driver

import (
	"sync"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

// epochs remember the newest leader of each cluster, so that a deposed one that shares this driver is refused. They need
// not outlive the process: a new process has no connections of old leaders' calls.
type epochs struct {
	mu     sync.Mutex
	newest map[string]int64
}

// check returns STALE_EPOCH for a mutation of a leader that is not the newest. Epoch 0 is unknown and passes.
func (e *epochs) check(meta *driverv1alpha1.RequestMeta) error {
	epoch := meta.GetLeaderEpoch()
	if epoch == 0 {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if epoch < e.newest[meta.GetClusterUid()] {
		return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_STALE_EPOCH, "A newer leader of this cluster has called.")
	}
	if e.newest == nil {
		e.newest = map[string]int64{}
	}
	e.newest[meta.GetClusterUid()] = epoch
	return nil
}
