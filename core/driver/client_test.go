package driver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func TestCreateHandsItsOutcomeOverOnce(t *testing.T) {
	f := newFakeDriver()
	got := make(chan *driverv1alpha1.CreateMachineRequest, 1)
	f.create = func(_ context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		got <- r
		m := running(r.GetMachine())
		m.Operation = &driverv1alpha1.MachineOperation{PollAfter: durationpb.New(3 * time.Second)}
		m.LastKnownState = []byte("new")
		m.Addresses = []*driverv1alpha1.MachineAddress{{Type: driverv1alpha1.AddressType_ADDRESS_TYPE_INTERNAL_IP, Address: "10.0.0.7"}}
		return &driverv1alpha1.CreateMachineResponse{Machine: m}, nil
	}
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{LeaderEpoch: func() int64 { return 7 }}, path)
	r.awaitReady(t)

	m := machine("a")
	m.LastKnownState, m.Secrets = []byte("old"), map[string][]byte{"password": []byte("hush")}
	if err := r.StartCreate(t.Context(), m, []byte("#cloud-config"), map[string]string{"k": "v"}); err != nil {
		t.Fatal(err)
	}
	outcome := r.outcome(t, m)
	want := instance.Outcome{Operation: instance.Create, Instance: &instance.Instance{
		ProviderID:     prefix + m.UID,
		State:          instance.Running,
		PollAfter:      3 * time.Second,
		LastKnownState: []byte("new"),
		Addresses:      []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.7"}},
	}}
	if diff := cmp.Diff(want, outcome, cmpopts.IgnoreFields(instance.Outcome{}, "Started", "Ended")); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if outcome.Started.IsZero() || outcome.Ended.Before(outcome.Started) {
		t.Errorf("started %v, ended %v", outcome.Started, outcome.Ended)
	}
	if _, progress := r.Collect(m.Key(), m.UID); progress != Idle {
		t.Errorf("a second Collect says %s, want Idle", progress)
	}
	request := <-got
	if violations := contract.CheckRequest(request); len(violations) > 0 {
		t.Errorf("the request breaks the contract: %v", violations)
	}
	if request.GetMeta().GetLeaderEpoch() != 7 || request.GetMeta().GetClusterUid() != clusterUID {
		t.Errorf("meta: %v", request.GetMeta())
	}
	if string(request.GetUserData()) != "#cloud-config" || request.GetTags()["k"] != "v" ||
		string(request.GetLastKnownState()) != "old" || string(request.GetProvider().GetSecrets()["password"]) != "hush" {
		t.Error("the request does not hold what was given")
	}
}

func TestDelete(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer *driverv1alpha1.MachineState
		want   *instance.Instance
	}{
		{"while something remains there is an instance", driverv1alpha1.MachineState_MACHINE_STATE_DELETING.Enum(),
			&instance.Instance{ProviderID: prefix + "uid-a", State: instance.Deleting}},
		{"nothing left is a success without one", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFakeDriver()
			f.remove = func(_ context.Context, r *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.DeleteMachineResponse, error) {
				if test.answer == nil {
					return &driverv1alpha1.DeleteMachineResponse{}, nil
				}
				m := running(r.GetMachine())
				m.State = *test.answer
				return &driverv1alpha1.DeleteMachineResponse{Machine: m}, nil
			}
			path := socketPath(t)
			f.serve(t, path)
			r := start(t, Config{}, path)
			r.awaitReady(t)
			if err := r.StartDelete(t.Context(), machine("a")); err != nil {
				t.Fatal(err)
			}
			outcome := r.outcome(t, machine("a"))
			if outcome.Operation != instance.Delete || outcome.Failure != nil {
				t.Errorf("outcome %+v", outcome)
			}
			if diff := cmp.Diff(test.want, outcome.Instance); diff != "" {
				t.Errorf("instance (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneMutationPerMachine(t *testing.T) {
	f := newFakeDriver()
	entered, proceed := make(chan struct{}), make(chan struct{})
	f.create = func(_ context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		entered <- struct{}{}
		<-proceed
		return &driverv1alpha1.CreateMachineResponse{Machine: running(r.GetMachine())}, nil
	}
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{}, path)
	r.awaitReady(t)
	m := machine("a")
	if err := r.StartCreate(t.Context(), m, nil, nil); err != nil {
		t.Fatal(err)
	}
	<-entered
	for name, err := range map[string]error{
		"create": r.StartCreate(t.Context(), m, nil, nil), "delete": r.StartDelete(t.Context(), m), "reserve": r.Reserve(m, instance.Create),
	} {
		if !errors.Is(err, ErrBusy) {
			t.Errorf("%s beside a create: %v, want ErrBusy", name, err)
		}
	}
	if _, progress := r.Collect(m.Key(), m.UID); progress != UnderWay {
		t.Errorf("progress %s, want UnderWay", progress)
	}
	// Forgotten, the uid stays busy until the call has ended, and its outcome is dropped.
	r.Forget(m.Key(), m.UID)
	if err := r.StartDelete(t.Context(), m); !errors.Is(err, ErrBusy) {
		t.Errorf("delete of a forgotten machine beside its create: %v, want ErrBusy", err)
	}
	close(proceed)
	r.await(t, "the end of the call", func() bool {
		_, progress := r.Collect(m.Key(), m.UID)
		return progress == Idle
	})
	if err := r.StartDelete(t.Context(), m); err != nil {
		t.Errorf("delete after the create: %v", err)
	}
	r.outcome(t, m)
}

func TestFailuresAreClassified(t *testing.T) {
	f := newFakeDriver()
	f.create = func(context.Context, *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		return nil, says(codes.ResourceExhausted, "QUOTA_EXCEEDED", "Quota exceeded for cores: 20 of 20",
			&driverv1alpha1.PartialState{ProviderId: prefix + "1", LastKnownState: []byte("port")})
	}
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{}, path)
	r.awaitReady(t)
	m := machine("a")
	if err := r.StartCreate(t.Context(), m, nil, nil); err != nil {
		t.Fatal(err)
	}
	want := &instance.Failure{
		Class: instance.Quota, Reason: "QuotaExceeded", Message: "Quota exceeded for cores: 20 of 20",
		ProviderID: prefix + "1", LastKnownState: []byte("port"),
	}
	if diff := cmp.Diff(want, r.outcome(t, m).Failure); diff != "" {
		t.Errorf("failure (-want +got):\n%s", diff)
	}
}

func TestAFailuresForeignProviderIDIsDropped(t *testing.T) {
	f := newFakeDriver()
	f.create = func(context.Context, *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		return nil, says(codes.Internal, "PROVIDER_INTERNAL", "half-way", &driverv1alpha1.PartialState{ProviderId: "other:///1"})
	}
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{}, path)
	r.awaitReady(t)
	m := machine("a")
	if err := r.StartCreate(t.Context(), m, nil, nil); err != nil {
		t.Fatal(err)
	}
	if failure := r.outcome(t, m).Failure; failure == nil || failure.ProviderID != "" {
		t.Errorf("failure %+v, want one without a providerID", failure)
	}
}

func TestNothingIsSentThatBreaksALimit(t *testing.T) {
	f := newFakeDriver()
	f.caps.Limits.MaxUserDataBytes = 10
	f.create = func(context.Context, *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		t.Error("CreateMachine was sent")
		return nil, nil
	}
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{}, path)
	r.awaitReady(t)
	for _, test := range []struct {
		name     string
		change   func(*wire.Machine)
		userData string
		want     string
	}{
		{"user data beyond the driver's own limit", func(*wire.Machine) {}, "12345678901", "RequestTooLarge"},
		{"a spec beyond the contract's", func(m *wire.Machine) {
			m.Spec = []byte(`{"a":"` + string(make([]byte, contract.MaxProviderSpecBytes)) + `"}`)
		}, "", "SpecInvalid"},
		{"a large spec that is JSON", func(m *wire.Machine) {
			m.Spec = append([]byte(`{}`), []byte(spaces(contract.MaxProviderSpecBytes))...)
		}, "", "RequestTooLarge"},
		{"a state beyond the contract's", func(m *wire.Machine) {
			m.LastKnownState = make([]byte, contract.MaxLastKnownStateBytes+1)
		}, "", "RequestTooLarge"},
		{"a spec that is no object", func(m *wire.Machine) { m.Spec = []byte(`[]`) }, "", "SpecInvalid"},
		{"no uid", func(m *wire.Machine) { m.UID = "" }, "", "SpecInvalid"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := machine("a")
			test.change(&m)
			err := r.StartCreate(t.Context(), m, []byte(test.userData), nil)
			var failure *instance.Failure
			if !errors.As(err, &failure) || failure.Class != instance.SpecInvalid || failure.Reason != test.want {
				t.Errorf("got %v, want SpecInvalid with reason %s", err, test.want)
			}
		})
	}
}

func spaces(n int) string {
	all := make([]byte, n)
	for i := range all {
		all[i] = ' '
	}
	return string(all)
}

func TestADriverThatKnowsALaterLeaderEndsThisOne(t *testing.T) {
	f := newFakeDriver()
	f.remove = func(context.Context, *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.DeleteMachineResponse, error) {
		return nil, says(codes.FailedPrecondition, "STALE_EPOCH", "epoch 8 was here")
	}
	path := socketPath(t)
	f.serve(t, path)
	leadershipLost := make(chan struct{}, 1)
	r := start(t, Config{LeadershipLost: func() { leadershipLost <- struct{}{} }}, path)
	r.awaitReady(t)
	m := machine("a")
	if err := r.StartDelete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if outcome := r.outcome(t, m); outcome.Failure == nil || outcome.Failure.Class != instance.StaleEpoch {
		t.Errorf("the outcome is %+v, want class StaleEpoch", outcome)
	}
	select {
	case <-leadershipLost:
	default:
		t.Error("nobody was told that this leader is deposed")
	}
}
