package conformance

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// slow is a driver that takes its time for each call, and counts how many are under way.
type slow struct {
	driverv1alpha1.MachineServiceClient
	mu          sync.Mutex
	under, most int
	creates     int
}

const slowness = time.Second

func (s *slow) work() {
	s.mu.Lock()
	s.under++
	s.most = max(s.most, s.under)
	s.mu.Unlock()
	<-time.After(slowness)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under--
}

func (s *slow) CreateMachine(_ context.Context, r *driverv1alpha1.CreateMachineRequest, _ ...grpc.CallOption) (*driverv1alpha1.CreateMachineResponse, error) {
	s.work()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creates++
	return &driverv1alpha1.CreateMachineResponse{Machine: &driverv1alpha1.Machine{
		Ref: r.GetMachine(), ProviderId: "slow:///" + r.GetMachine().GetUid(), State: driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
	}}, nil
}

func (s *slow) DeleteMachine(context.Context, *driverv1alpha1.DeleteMachineRequest, ...grpc.CallOption) (*driverv1alpha1.DeleteMachineResponse, error) {
	s.work()
	return &driverv1alpha1.DeleteMachineResponse{}, nil
}

// try runs fault/concurrent with the driver.
func (s *slow) try(t *testing.T, crowd int, limit int32) Result {
	t.Helper()
	j, err := openJournal(t.TempDir(), "run")
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	to := &target{machines: s, capabilities: &driverv1alpha1.GetCapabilitiesResponse{Limits: &driverv1alpha1.Limits{MaxConcurrentRequests: limit}}}
	to.turns = make(chan struct{}, to.maxRequests())
	c := Config{Crowd: crowd, Timeouts: Timeouts{Running: Duration{2 * slowness}, Gone: Duration{2 * slowness}}}
	one := newTrial(&session{target: to, config: c, journal: j})
	return one.result(t.Context(), Check{ID: "fault/concurrent", run: concurrentMachines})
}

// Machines that wait for their turn use up nothing of the time that the cloud has.
func TestADriverGetsNoMoreCallsAtOnceThanItTakes(t *testing.T) {
	for name, tc := range map[string]struct {
		crowd    int
		limit    int32
		wantMost int
	}{
		"one":                  {10, 1, 1},
		"fewer than machines":  {10, 3, 3},
		"more than machines":   {10, 50, 10},
		"no limit, few":        {10, 0, 10},
		"no limit is core's":   {100, 0, 64},
		"as many as there are": {10, 10, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slow{}
				if r := s.try(t, tc.crowd, tc.limit); r.Outcome != Passed {
					t.Errorf("%s: %s", r.Outcome, strings.Join(r.Breaches, "; "))
				}
				if s.most != tc.wantMost || s.creates != tc.crowd {
					t.Errorf("got %d calls at once, and %d creates; want %d and %d", s.most, s.creates, tc.wantMost, tc.crowd)
				}
			})
		})
	}
}

func TestNoCrowdIsMadeUnasked(t *testing.T) {
	s := &slow{}
	r := s.try(t, 0, 0)
	if r.Outcome != NotRun || !strings.Contains(r.Reason, "crowd") || s.creates != 0 {
		t.Errorf("%s (%s) after %d creates", r.Outcome, r.Reason, s.creates)
	}
}
