package driver_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/cloud"
)

func on(operation string, f *backendv1alpha1.Fault) *backendv1alpha1.Fault {
	f.Match, f.Times = &backendv1alpha1.FaultMatch{Operation: operation}, 1
	return f
}

func lost(operation string) *backendv1alpha1.Fault {
	return on(operation, &backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ANSWER_LOST})
}

func TestLostAnswersOfACreate(t *testing.T) {
	for _, operation := range []string{"ListVMs", "ListNICs", "CreateNIC", "CreateVM"} {
		t.Run(operation, func(t *testing.T) {
			w := newWorld(t, cloud.Options{})
			w.inject(lost(operation))
			_, err := w.machines.CreateMachine(t.Context(), createRequest("m1"))
			w.expectReason(err, codes.Unavailable, "OUTCOME_UNKNOWN")
			if got := w.create("m1"); got.GetState() != running {
				t.Errorf("created again: %v", got)
			}
			w.expectCloud(1, 2)
			w.delete("m1")
			w.expectCloud(1, 0)
		})
	}
}

func TestLostAnswersOfADelete(t *testing.T) {
	for _, operation := range []string{"ListVMs", "ListNICs", "DeleteVM", "DeleteNIC"} {
		t.Run(operation, func(t *testing.T) {
			w := newWorld(t, cloud.Options{})
			w.create("m1")
			w.inject(lost(operation))
			_, err := w.machines.DeleteMachine(t.Context(), deleteRequest("m1"))
			w.expectReason(err, codes.Unavailable, "OUTCOME_UNKNOWN")
			if left := w.delete("m1"); left != nil {
				t.Errorf("deleted again: %v", left)
			}
			w.expectCloud(1, 0)
		})
	}
}

func TestLeftoverOfACreateIsShownFinishedAndDeleted(t *testing.T) {
	leave := func(w *world) {
		w.inject(on("CreateVM", &backendv1alpha1.Fault{
			Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR,
			Error:  &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_CAPACITY},
		}))
		_, err := w.machines.CreateMachine(w.Context(), createRequest("m1"))
		w.expectReason(err, codes.ResourceExhausted, "CAPACITY_UNAVAILABLE")
		w.expectCloud(0, 1)
	}
	t.Run("shown and finished", func(t *testing.T) {
		w := newWorld(t, cloud.Options{})
		leave(w)
		for name, got := range map[string]*driverv1alpha1.Machine{"status": w.status("m1"), "list": w.list(0)["m1"]} {
			if got.GetState() != failed || got.GetProviderId() != "" || got.GetReason() == "" {
				t.Errorf("%s: %v", name, got)
			}
		}
		if got := w.create("m1"); got.GetState() != running {
			t.Errorf("finished: %v", got)
		}
		w.expectCloud(1, 2)
	})
	t.Run("deleted", func(t *testing.T) {
		w := newWorld(t, cloud.Options{})
		leave(w)
		if left := w.delete("m1"); left != nil {
			t.Errorf("left: %v", left)
		}
		w.expectCloud(0, 0)
	})
}

// A create that core gave up lands after core's first delete: the next delete finds it.
func TestCreateThatLandsLate(t *testing.T) {
	for _, point := range []backendv1alpha1.FaultPoint{
		backendv1alpha1.FaultPoint_FAULT_POINT_BEFORE_EFFECT, backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT,
	} {
		for _, operation := range []string{"CreateNIC", "CreateVM"} {
			t.Run(operation+" "+point.String(), func(t *testing.T) {
				w := newWorld(t, cloud.Options{})
				w.inject(on(operation, &backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD, Point: point}))
				ctx, giveUp := context.WithCancel(t.Context())
				given := make(chan error, 1)
				go func() {
					_, err := w.machines.CreateMachine(ctx, createRequest("m1"))
					given <- err
				}()
				want := point == backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT
				w.await(operation, func(c *backendv1alpha1.Call) bool { return len(c.GetFaultIds()) > 0 && c.GetDone() == want })
				giveUp()
				if err := <-given; status.Code(err) != codes.Canceled {
					t.Errorf("given up: %v", err)
				}
				w.await(operation, func(c *backendv1alpha1.Call) bool {
					return c.GetProgress() == backendv1alpha1.CallProgress_CALL_PROGRESS_ABANDONED
				})
				w.delete("m1")
				w.removeFaults()
				w.await(operation, func(c *backendv1alpha1.Call) bool { return c.GetAnswerTime() != nil })
				if left := w.delete("m1"); left != nil {
					t.Errorf("left: %v", left)
				}
				calls, err := w.hooks.ListCalls(t.Context(), &backendv1alpha1.ListCallsRequest{Operation: "CreateVM"})
				if err != nil {
					t.Fatalf("list calls: %v", err)
				}
				if n := len(calls.GetCalls()); operation == "CreateNIC" && n > 0 {
					t.Errorf("the driver went on after it was given up: %v", calls)
				}
				totals, err := w.hooks.GetTotals(t.Context(), &backendv1alpha1.GetTotalsRequest{})
				if err != nil || totals.GetResourcesLeft() != 0 || totals.GetVmsCreated() > 1 {
					t.Errorf("totals: %v, %v", totals, err)
				}
			})
		}
	}
}

// A VM that comes up between our questions for VMs and for NICs is neither a leftover nor gone.
func TestVMThatComesWhileWeLook(t *testing.T) {
	for name, look := range map[string]func(*world) (*driverv1alpha1.Machine, error){
		"status": func(w *world) (*driverv1alpha1.Machine, error) {
			answer, err := w.machines.GetMachineStatus(w.Context(), statusRequest("m1"))
			return answer.GetMachine(), err
		},
		"delete": func(w *world) (*driverv1alpha1.Machine, error) {
			answer, err := w.machines.DeleteMachine(w.Context(), deleteRequest("m1"))
			return answer.GetMachine(), err
		},
		"list": func(w *world) (*driverv1alpha1.Machine, error) {
			answer, err := w.machines.ListMachines(w.Context(), &driverv1alpha1.ListMachinesRequest{Meta: meta(), Provider: provider("{}")})
			if len(answer.GetMachines()) != 1 {
				return nil, err
			}
			return answer.GetMachines()[0], err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cloud.Options{})
			w.inject(on("ListNICs", &backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD}))
			type result struct {
				machine *driverv1alpha1.Machine
				err     error
			}
			looked := make(chan result, 1)
			go func() {
				machine, err := look(w)
				looked <- result{machine, err}
			}()
			w.await("ListNICs", func(c *backendv1alpha1.Call) bool { return len(c.GetFaultIds()) > 0 })
			w.create("m1")
			w.removeFaults()
			want := creating
			if name == "delete" {
				want = deleting
			}
			if got := <-looked; got.err != nil || got.machine.GetState() != want {
				t.Errorf("got %v, %v; want %v", got.machine, got.err, want)
			}
			w.delete("m1")
			w.expectCloud(1, 0)
		})
	}
}

func TestTheCloudsErrorsInTheContractsTerms(t *testing.T) {
	for _, test := range []struct {
		name   backendv1alpha1.NamedError
		code   codes.Code
		reason string
	}{
		{backendv1alpha1.NamedError_NAMED_ERROR_QUOTA, codes.ResourceExhausted, "QUOTA_EXCEEDED"},
		{backendv1alpha1.NamedError_NAMED_ERROR_CAPACITY, codes.ResourceExhausted, "CAPACITY_UNAVAILABLE"},
		{backendv1alpha1.NamedError_NAMED_ERROR_CREDENTIALS, codes.Unauthenticated, "CREDENTIALS_INVALID"},
		{backendv1alpha1.NamedError_NAMED_ERROR_PERMISSION, codes.PermissionDenied, "PERMISSION_MISSING"},
		{backendv1alpha1.NamedError_NAMED_ERROR_RATE_LIMIT, codes.ResourceExhausted, "RATE_LIMITED"},
		{backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL, codes.Internal, "PROVIDER_INTERNAL"},
		{backendv1alpha1.NamedError_NAMED_ERROR_UNAVAILABLE, codes.Unavailable, "OUTCOME_UNKNOWN"},
		{backendv1alpha1.NamedError_NAMED_ERROR_DEPENDENCY, codes.FailedPrecondition, "DEPENDENCY_NOT_FOUND"},
	} {
		t.Run(test.name.String(), func(t *testing.T) {
			w := newWorld(t, cloud.Options{})
			w.inject(on("CreateVM", &backendv1alpha1.Fault{
				Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR,
				Error:  &backendv1alpha1.FaultError{Name: test.name, Message: "the cloud's own words", RetryAfter: durationpb.New(7 * time.Second)},
			}))
			_, err := w.machines.CreateMachine(t.Context(), createRequest("m1"))
			w.expectReason(err, test.code, test.reason)
			if got := status.Convert(err).Message(); got != "the cloud's own words" {
				t.Errorf("message %q", got)
			}
			if test.reason == "RATE_LIMITED" && retryAfter(err) != 7*time.Second {
				t.Errorf("retry after %v", retryAfter(err))
			}
		})
	}
}

func retryAfter(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

func TestQuotaInTheCloudsWords(t *testing.T) {
	w := newWorld(t, cloud.Options{Quota: map[string]int64{"vm": 1}})
	w.create("m1")
	_, err := w.machines.CreateMachine(t.Context(), createRequest("m2"))
	w.expectReason(err, codes.ResourceExhausted, "QUOTA_EXCEEDED")
	if got := status.Convert(err).Message(); got != "Quota exceeded for vm: requested 1, but already used 1 of 1" {
		t.Errorf("message %q", got)
	}
	if _, err := w.hooks.SetQuota(t.Context(), &backendv1alpha1.SetQuotaRequest{Limits: map[string]int64{"vm": 2}}); err != nil {
		t.Fatalf("raise the quota: %v", err)
	}
	w.create("m2")
	w.expectCloud(2, 4)
}

func TestSpecsThatAreWrong(t *testing.T) {
	w := newWorld(t, cloud.Options{})
	for _, test := range []struct{ name, spec, reason, field string }{
		{"unknown field", `{"flavor":"small","image":"ubuntu-24.04","colour":"red"}`, "SPEC_INVALID", "colour"},
		{"case differs", `{"Flavor":"small","image":"ubuntu-24.04"}`, "SPEC_INVALID", "Flavor"},
		{"missing field", `{"flavor":"small"}`, "SPEC_INVALID", "image"},
		{"wrong type", `{"flavor":7,"image":"ubuntu-24.04"}`, "SPEC_INVALID", "flavor"},
		{"null", `{"flavor":null,"image":"ubuntu-24.04"}`, "SPEC_INVALID", "flavor"},
		{"empty zone", `{"flavor":"small","image":"ubuntu-24.04","zone":""}`, "SPEC_INVALID", "zone"},
		{"no object", `[]`, "SPEC_INVALID", "provider.provider_spec"},
		{"unknown flavor", `{"flavor":"huge","image":"ubuntu-24.04"}`, "DEPENDENCY_NOT_FOUND", ""},
		{"unknown image", `{"flavor":"small","image":"beos"}`, "DEPENDENCY_NOT_FOUND", ""},
		{"unknown zone", `{"flavor":"small","image":"ubuntu-24.04","zone":"moon"}`, "DEPENDENCY_NOT_FOUND", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := createRequest("m1")
			request.Provider = provider(test.spec)
			_, err := w.machines.CreateMachine(t.Context(), request)
			code := codes.InvalidArgument
			if test.reason == "DEPENDENCY_NOT_FOUND" {
				code = codes.FailedPrecondition
			}
			(&world{T: t}).expectReason(err, code, test.reason)
			if got := firstField(err); got != test.field {
				t.Errorf("names the field %q, want %q", got, test.field)
			}
		})
	}
	request := createRequest("m1")
	request.UserData = make([]byte, 64<<10+1)
	_, err := w.machines.CreateMachine(t.Context(), request)
	w.expectReason(err, codes.InvalidArgument, "REQUEST_TOO_LARGE")
	request.UserData = request.UserData[1:]
	w.delete("m1")
	if _, err := w.machines.CreateMachine(t.Context(), request); err != nil {
		t.Errorf("user data at the limit: %v", err)
	}
}

func firstField(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			return bad.GetFieldViolations()[0].GetField()
		}
	}
	return ""
}

func TestAnotherAccountIsAnError(t *testing.T) {
	w := newWorld(t, cloud.Options{Accounts: map[string]string{"key-of-a": "a", "key-of-b": "b"}})
	withKey := func(key string) *driverv1alpha1.ProviderContext {
		return &driverv1alpha1.ProviderContext{ProviderSpec: []byte(smallSpec), Secrets: map[string][]byte{"key": []byte(key)}}
	}
	create := createRequest("m1")
	create.Provider = withKey("key-of-a")
	born, err := w.machines.CreateMachine(t.Context(), create)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	get, remove := statusRequest("m1"), deleteRequest("m1")
	get.LastKnownState, remove.LastKnownState, create.LastKnownState =
		born.GetMachine().GetLastKnownState(), born.GetMachine().GetLastKnownState(), born.GetMachine().GetLastKnownState()
	get.Provider, remove.Provider, create.Provider = withKey("key-of-b"), withKey("key-of-b"), withKey("key-of-b")
	_, err = w.machines.GetMachineStatus(t.Context(), get)
	w.expectReason(err, codes.FailedPrecondition, "ACCOUNT_CHANGED")
	_, err = w.machines.DeleteMachine(t.Context(), remove)
	w.expectReason(err, codes.FailedPrecondition, "ACCOUNT_CHANGED")
	_, err = w.machines.CreateMachine(t.Context(), create)
	w.expectReason(err, codes.FailedPrecondition, "ACCOUNT_CHANGED")
	get.Provider = withKey("wrong")
	_, err = w.machines.GetMachineStatus(t.Context(), get)
	w.expectReason(err, codes.Unauthenticated, "CREDENTIALS_INVALID")
	get.Provider, get.LastKnownState = withKey("key-of-a"), []byte("lost and found")
	if again, err := w.machines.GetMachineStatus(t.Context(), get); err != nil || again.GetMachine().GetState() != running {
		t.Errorf("without the last known state: %v, %v", again, err)
	}
	w.expectCloud(1, 2)
}

func TestDeposedLeaderIsRefused(t *testing.T) {
	w := newWorld(t, cloud.Options{})
	at := func(epoch int64) error {
		request := createRequest("m1")
		request.Meta.LeaderEpoch = epoch
		_, err := w.machines.CreateMachine(t.Context(), request)
		return err
	}
	for _, epoch := range []int64{0, 5, 5, 6, 0} {
		if err := at(epoch); err != nil {
			t.Errorf("epoch %d: %v", epoch, err)
		}
	}
	w.expectReason(at(5), codes.FailedPrecondition, "STALE_EPOCH")
	request := deleteRequest("m1")
	request.Meta.LeaderEpoch = 4
	_, err := w.machines.DeleteMachine(t.Context(), request)
	w.expectReason(err, codes.FailedPrecondition, "STALE_EPOCH")
	request.Meta.ClusterUid = "other"
	if _, err := w.machines.DeleteMachine(t.Context(), request); err != nil {
		t.Errorf("another cluster counts for itself: %v", err)
	}
}
