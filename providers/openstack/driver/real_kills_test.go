package driver

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/session"
)

// killer is a driver's way to the cloud, which ends at a request that changes something: before it
// is sent, or after it was answered. Logins do not count.
type killer struct {
	// left is how many such requests the driver may send.
	left     atomic.Int64
	answered bool
	killed   atomic.Bool
}

var errKilled = errors.New("the driver is killed")

// RoundTrip implements http.RoundTripper.
func (k *killer) RoundTrip(request *http.Request) (*http.Response, error) {
	isWrite := request.Method != http.MethodGet && request.URL.Path != "/v3/auth/tokens"
	last := isWrite && k.left.Add(-1) < 0
	if k.killed.Load() || last && !k.answered {
		k.killed.Store(true)
		return nil, errKilled
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	if last && err == nil {
		k.killed.Store(true)
		_ = answer.Body.Close() // nobody reads it
		return nil, errKilled
	}
	return answer, err
}

// restartUntil is a driver that remembers nothing, and is killed at a request.
func (r *realServices) restartUntil(k *killer) {
	r.Driver = New(session.NewPool(session.Options{Transport: k}), Options{Version: "test", CreateSettle: realSettle, PollInterval: 500 * time.Millisecond})
}

// The driver is killed at each request in turn that makes or deletes something of a machine on
// volumes, before and after it. There is one of each while the machine is there, and nothing after.
func TestKillsOnRealServices(t *testing.T) {
	const writes = 4 // a port, two volumes and a server; as many to delete them
	for _, answered := range []bool{false, true} {
		for at := range int64(writes) {
			t.Run(fmt.Sprintf("request %d answered %t", at+1, answered), func(t *testing.T) {
				r := onRealServices(t, map[string]any{
					"rootDiskSizeGB": 2, "rootDiskVolumeType": "ssd", "rootDiskAvailabilityZone": "nova",
					"additionalBlockDevices": []map[string]any{{"name": "data", "sizeGiB": 1, "storage": map[string]any{"volume": map[string]any{"type": "ssd", "availabilityZone": "nova"}}}},
				})
				r.killAt(at, answered, "its creation", func() (bool, error) {
					m, err := r.create()
					return m.GetState() != 0, err
				})
				r.running()
				if made := r.volumes(); len(made) != 2 {
					t.Errorf("its volumes are %+v", made)
				}
				r.killAt(at, answered, "its deletion", func() (bool, error) {
					left, err := r.DeleteMachine(t.Context(), &driverv1alpha1.DeleteMachineRequest{Meta: r.meta(), Machine: r.ref(), Provider: r.provider})
					return left == nil && err == nil, err
				})
				r.remove()
			})
		}
	}
}

// killAt asks until the answer is what is wanted. The driver is killed at a request, and another
// one goes on.
func (r *realServices) killAt(at int64, answered bool, what string, ask func() (done bool, err error)) {
	r.Helper()
	k := &killer{answered: answered}
	k.left.Store(at)
	r.restartUntil(k)
	once := sync.OnceFunc(r.restart)
	r.await(what, func() (bool, any) {
		done, err := ask()
		if k.killed.Load() {
			once()
		}
		return done, err
	})
	if !k.killed.Load() {
		r.Errorf("%s took fewer requests", what)
	}
}
