package driver

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
	"github.com/millwright-dev/millwright/providers/openstack/session"
)

// another returns a second driver of the world's cloud, as another process would be: with nothing
// remembered.
func (w *world) another(o Options) *world {
	other := *w
	other.Driver = New(session.NewPool(session.Options{}), o)
	return &other
}

// A port that another process has made may have had a request for a server, which may still be on
// its way: it is waited for, once.
func TestARequestOfAnotherProcessIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{}).another(Options{CreateSettle: time.Hour})
	w.inject(&backendv1alpha1.Fault{
		Match: &backendv1alpha1.FaultMatch{Operation: "CreateServer"}, Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, Times: 1,
		Error: &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL},
	})
	_, err := w.create("one", nil)
	w.refused("a create that the cloud fails", err, driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL)
	// However old the port is: the last request for a server may be younger.
	later := 24 * time.Hour
	other := w.another(Options{CreateSettle: time.Hour, Clock: func() time.Time { return time.Now().Add(later) }})
	_, err = other.create("one", nil)
	other.refused("a create while another may be on its way", err, driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING)
	// The one who has asked knows that he was answered, but not what by.
	_, err = w.create("one", nil)
	w.refused("a create after an error that may have had an effect", err, driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING)
	later += time.Hour
	other.created("one", nil)
	if diff := cmp.Diff(map[string]int{"vm": 1, "port": 1}, w.left()); diff != "" {
		t.Errorf("there are (-want +got):\n%s", diff)
	}
}

// Who was refused asks again at once: nothing can be on its way.
func TestARefusalIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	if _, err := w.hooks.SetQuota(t.Context(), &backendv1alpha1.SetQuotaRequest{Limits: map[string]int64{"vm": 0}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := w.create("one", nil)
		w.refused("a create beyond the quota", err, driverv1alpha1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED)
	}
	if _, err := w.hooks.SetQuota(t.Context(), &backendv1alpha1.SetQuotaRequest{Limits: map[string]int64{"vm": 1}}); err != nil {
		t.Fatal(err)
	}
	w.created("one", nil)
}

// Two drivers, such as those of two leaders, that are asked for one machine at the same time make
// it once.
func TestTwoDriversMakeOneServer(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]map[string]any{
		"own network": nil, "network of another project": {"network": "shared"},
		"slow floating IP": {"floatingIpPool": "ext-net"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, openstacksim.Options{MaxCallLatency: 10 * time.Millisecond, BindLatency: 20 * time.Millisecond})
			w.inject(&backendv1alpha1.Fault{
				Match: &backendv1alpha1.FaultMatch{Operation: "CreateFloatingIP"}, Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_LATENCY,
				Latency: &backendv1alpha1.FaultLatency{Min: durationpb.New(300 * time.Millisecond)},
			})
			soon := Options{CreateSettle: time.Second}
			var wait sync.WaitGroup
			for _, each := range []*world{w.another(soon), w.another(soon)} {
				wait.Go(func() {
					for {
						m, err := each.create("one", more)
						if err == nil && m.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_RUNNING {
							return
						}
						if t.Context().Err() != nil || m.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_FAILED {
							t.Errorf("it failed: %v, %v", m, err)
							return
						}
					}
				})
			}
			wait.Wait()
			totals, err := w.hooks.GetTotals(t.Context(), &backendv1alpha1.GetTotalsRequest{})
			if err != nil || totals.GetVmsCreated() != 1 {
				t.Errorf("%d servers were made (%v)", totals.GetVmsCreated(), err)
			}
			left := w.left()
			if delete(left, "floatingip"); cmp.Diff(map[string]int{"vm": 1, "port": 1}, left) != "" {
				t.Errorf("there are %v", left)
			}
		})
	}
}

// Two ports in a network of another project, where addresses must not be chosen, are no rivals of
// each other.
func TestTwoPortsInASharedNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	more := map[string]any{"network": "", "ports": []map[string]any{{"network": "shared"}, {"network": "shared"}}}
	w.created("one", more)
	w.created("one", more)
	if diff := cmp.Diff(map[string]int{"vm": 1, "port": 2}, w.left()); diff != "" {
		t.Errorf("there are (-want +got):\n%s", diff)
	}
	w.gone("one")
}

// Another region is another account: there, everything would look gone.
func TestAnotherRegionIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	m := w.created("one", nil)
	_, err := w.DeleteMachine(t.Context(), &driverv1alpha1.DeleteMachineRequest{
		Meta: meta(), Machine: ref("one"), Provider: w.provider(map[string]any{"region": "dbl"}), LastKnownState: m.GetLastKnownState(),
	})
	w.refused("a delete in another region", err, driverv1alpha1.ErrorReason_ERROR_REASON_ACCOUNT_CHANGED)
}

// A uid whose port was made for another name is told of, also while its server cannot be seen:
// nothing can be made beside it.
func TestAPortOfAnotherName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, openstacksim.Options{})
	w.created("one", nil)
	other := ref("other")
	other.Uid = ref("one").GetUid()
	if _, err := w.hooks.InjectFault(t.Context(), &backendv1alpha1.InjectFaultRequest{Fault: &backendv1alpha1.Fault{
		Match: &backendv1alpha1.FaultMatch{Operation: "ListServers"}, Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_STALE,
	}}); err != nil {
		t.Fatal(err)
	}
	_, err := w.CreateMachine(t.Context(), &driverv1alpha1.CreateMachineRequest{Meta: meta(), Machine: other, Provider: w.provider(nil)})
	w.refused("a create of a uid whose port has another name", err, driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN)
}
