package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
	"github.com/millwright-dev/millwright/sdk/rig"
)

func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

func fieldsOf(err error) string {
	var fields []string
	for _, v := range sdk.FieldViolations(err) {
		fields = append(fields, v.GetField())
	}
	return strings.Join(fields, " ")
}

func TestRequestsOfAWrongShapeNeverReachTheDriver(t *testing.T) {
	var reached atomic.Int32
	driver := &sawmill{create: func(_ context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
		reached.Add(1)
		return running(r.GetMeta(), r.GetMachine()), nil
	}}
	machines := driverv1alpha1.NewMachineServiceClient(rig.Start(t, driver))
	change := func(change func(*driverv1alpha1.CreateMachineRequest)) *driverv1alpha1.CreateMachineRequest {
		r := goodCreate()
		change(r)
		return r
	}
	cases := map[string]struct {
		request *driverv1alpha1.CreateMachineRequest
		reason  string
		fields  string
	}{
		"without a uid":          {change(func(r *driverv1alpha1.CreateMachineRequest) { r.Machine.Uid = "" }), "SPEC_INVALID", "machine.uid"},
		"without anything":       {&driverv1alpha1.CreateMachineRequest{}, "SPEC_INVALID", "meta provider machine"},
		"a spec that is no JSON": {change(func(r *driverv1alpha1.CreateMachineRequest) { r.Provider.ProviderSpec = []byte("{") }), "SPEC_INVALID", "provider.provider_spec"},
		"too much state": {change(func(r *driverv1alpha1.CreateMachineRequest) {
			r.LastKnownState = make([]byte, contract.MaxLastKnownStateBytes+1)
		}), "REQUEST_TOO_LARGE", "last_known_state"},
		"too much user data": {change(func(r *driverv1alpha1.CreateMachineRequest) {
			r.UserData = make([]byte, contract.DefaultMaxUserDataBytes+1)
		}), "REQUEST_TOO_LARGE", "user_data"},
		"too much, and wrong, too": {change(func(r *driverv1alpha1.CreateMachineRequest) {
			r.Machine.Uid, r.UserData = "", make([]byte, contract.DefaultMaxUserDataBytes+1)
		}), "SPEC_INVALID", "machine.uid user_data"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := machines.CreateMachine(t.Context(), tc.request)
			if status.Code(err) != codes.InvalidArgument || reasonOf(err) != tc.reason || fieldsOf(err) != tc.fields {
				t.Errorf("CreateMachine = %v (%s: %s), want %s: %s", err, reasonOf(err), fieldsOf(err), tc.reason, tc.fields)
			}
		})
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("%d of them have reached the driver", n)
	}
}

func TestUserDataUpToTheDriversOwnLimit(t *testing.T) {
	const limit = 100_000
	driver := &sawmill{info: func() sdk.Info {
		i := goodInfo()
		i.Limits = &driverv1alpha1.Limits{MaxUserDataBytes: limit}
		return i
	}}
	var got []byte
	driver.create = func(_ context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
		got = r.GetUserData()
		return running(r.GetMeta(), r.GetMachine()), nil
	}
	machines := driverv1alpha1.NewMachineServiceClient(rig.Start(t, driver))
	request := goodCreate()
	request.UserData = bytes.Repeat([]byte{0xff, 0x00}, limit/2)
	if _, err := machines.CreateMachine(t.Context(), request); err != nil {
		t.Errorf("exactly as much as allowed: %v", err)
	}
	if !bytes.Equal(got, request.UserData) {
		t.Error("user data has changed on its way")
	}
	request.UserData = append(request.UserData, 0)
	if _, err := machines.CreateMachine(t.Context(), request); reasonOf(err) != "REQUEST_TOO_LARGE" {
		t.Errorf("one byte more: %v, want REQUEST_TOO_LARGE", err)
	}
}

func TestMessagesOfAlmost8MiB(t *testing.T) {
	big := strings.Repeat("x", contract.MaxMessageBytes-4096)
	driver := &everything{list: func() (*driverv1alpha1.ListMachinesResponse, error) {
		return &driverv1alpha1.ListMachinesResponse{NextPageToken: big}, nil
	}}
	request := goodList()
	request.PageToken = big
	answer, err := driverv1alpha1.NewMachineServiceClient(rig.Start(t, driver)).ListMachines(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.GetNextPageToken()) != len(big) {
		t.Errorf("%d bytes came back, want %d", len(answer.GetNextPageToken()), len(big))
	}
}

// An empty list would tell core that every VM is gone.
func TestAnswersThatAreNil(t *testing.T) {
	driver := &everything{list: func() (*driverv1alpha1.ListMachinesResponse, error) { return nil, nil }}
	driver.create = func(context.Context, *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
		return nil, nil
	}
	driver.get = func(context.Context, *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error) {
		return nil, nil
	}
	machines := driverv1alpha1.NewMachineServiceClient(rig.Start(t, driver))
	errs := map[string]error{}
	_, errs["create"] = machines.CreateMachine(t.Context(), goodCreate())
	_, errs["get"] = machines.GetMachineStatus(t.Context(), goodGet())
	_, errs["list"] = machines.ListMachines(t.Context(), goodList())
	for call, err := range errs {
		if status.Code(err) != codes.Internal || reasonOf(err) != "PROVIDER_INTERNAL" {
			t.Errorf("%s answers %v, want PROVIDER_INTERNAL", call, err)
		}
	}
	if answer, err := machines.DeleteMachine(t.Context(), goodDelete()); err != nil || answer.GetMachine() != nil {
		t.Errorf("delete answers %v, %v; want that nothing is left", answer, err)
	}
}

func TestADriverThatPanics(t *testing.T) {
	var log lockedBuffer
	driver := &sawmill{
		create: func(_ context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
			panic("cannot parse " + string(r.GetUserData()))
		},
		get: func(context.Context, *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error) {
			var none []*driverv1alpha1.Machine
			return none[len(none)], nil
		},
	}
	conn := serve(t, driver, sdk.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}).dial(t)
	machines := driverv1alpha1.NewMachineServiceClient(conn)
	request := goodCreate()
	request.UserData = []byte("token-4711")
	for name, call := range map[string]func() error{
		"create": func() error { _, err := machines.CreateMachine(t.Context(), request); return err },
		"get":    func() error { _, err := machines.GetMachineStatus(t.Context(), goodGet()); return err },
	} {
		err := call()
		if status.Code(err) != codes.Internal || reasonOf(err) != "PROVIDER_INTERNAL" {
			t.Errorf("%s answers %v, want PROVIDER_INTERNAL", name, err)
		}
	}
	if _, err := machines.DeleteMachine(t.Context(), goodDelete()); err != nil {
		t.Errorf("the next call: %v; want a driver that has survived", err)
	}
	written := log.String()
	for _, want := range []string{"guard_test.go", "index out of range"} {
		if !strings.Contains(written, want) {
			t.Errorf("the log does not hold %q:\n%s", want, written)
		}
	}
	if strings.Contains(written, "token-4711") {
		t.Errorf("the log holds what the driver panicked with:\n%s", written)
	}
}

func TestACallThatIsGivenUpHasAnUnknownOutcome(t *testing.T) {
	entered, seen := make(chan struct{}), make(chan error, 1)
	driver := &sawmill{create: func(ctx context.Context, _ *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
		close(entered)
		<-ctx.Done()
		seen <- ctx.Err()
		return nil, ctx.Err()
	}}
	machines := driverv1alpha1.NewMachineServiceClient(rig.Start(t, driver))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	if _, err := machines.CreateMachine(ctx, goodCreate()); status.Code(err) != codes.Canceled || reasonOf(err) != "" {
		t.Errorf("CreateMachine = %v, want CANCELLED without ErrorInfo", err)
	}
	if err := await(t, seen, "the driver to learn of it"); !errors.Is(err, context.Canceled) {
		t.Errorf("the driver's context ended with %v, want that it was cancelled", err)
	}
}

func TestRPCsOfALaterContract(t *testing.T) {
	conn := rig.Start(t, &everything{})
	err := conn.Invoke(t.Context(), "/millwright.driver.v1alpha1.MachineService/RepaintMachine",
		goodGet(), &driverv1alpha1.GetMachineStatusResponse{}, grpc.WaitForReady(true))
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("an unknown RPC answers %v, want UNIMPLEMENTED", err)
	}
}
